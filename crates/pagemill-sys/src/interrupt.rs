//! A wish to stop, from the terminal or from whoever ends processes, as a flag that long work looks at.
//!
//! Why: work that made files has to remove them before it ends, which no signal handler can do.
//!
//! Invariants: the handler does nothing but store to an atomic; it is called once for each signal, the second one
//! of a kind ends the process as if nobody had listened; calls that were under way are made again (`SA_RESTART`).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the handler.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// What asks a process to end.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

extern "C" fn on_signal(_signal: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// From now on SIGINT, SIGTERM and SIGHUP set the flag that is returned, the first time each of them comes. One that
/// was ignored when the process began stays ignored, as nohup wants it.
///
/// # Errors
/// What the system reports.
pub fn watch_interrupts() -> io::Result<&'static AtomicBool> {
    for signal in SIGNALS {
        watch(signal)?;
    }
    Ok(&REQUESTED)
}

/// True once one of them came.
pub fn interrupted() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

fn watch(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: an all-zero `sigaction` is a valid one: the default action, an empty mask, no flags.
    let (mut wanted, mut before): (libc::sigaction, libc::sigaction) =
        unsafe { std::mem::zeroed() };
    // SAFETY: the call writes the action in force to a live value, and with a null pointer changes nothing.
    if unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if before.sa_sigaction == libc::SIG_IGN {
        return Ok(());
    }
    let handler: extern "C" fn(libc::c_int) = on_signal;
    wanted.sa_sigaction = handler as libc::sighandler_t;
    wanted.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
    // SAFETY: the action is a live value with a handler of the type that these flags call for; the handler only
    // stores to an atomic, which is async-signal-safe.
    match unsafe { libc::sigaction(signal, &raw const wanted, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone;

    fn ends_well(test: &str) {
        let status = alone::run(&format!("interrupt::tests::{test}")).unwrap();
        assert!(status.success(), "{status}");
    }

    #[test]
    fn a_signal_sets_the_flag_and_does_not_end_the_process() {
        ends_well("alone_a_signal_is_sent");
    }

    #[test]
    fn what_was_ignored_stays_ignored() {
        ends_well("alone_an_ignored_signal_is_sent");
    }

    #[test]
    fn alone_a_signal_is_sent() {
        if !alone::is_alone() {
            return;
        }
        let flag = watch_interrupts().unwrap();
        assert!(!flag.load(Ordering::Relaxed));
        // SAFETY: raising a signal that has a handler takes no pointer.
        unsafe { libc::raise(libc::SIGTERM) };
        assert!(flag.load(Ordering::Relaxed));
    }

    #[test]
    fn alone_an_ignored_signal_is_sent() {
        if !alone::is_alone() {
            return;
        }
        // SAFETY: ignoring a signal takes no pointer.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        let flag = watch_interrupts().unwrap();
        // SAFETY: raising an ignored signal takes no pointer.
        unsafe { libc::raise(libc::SIGHUP) };
        assert!(!flag.load(Ordering::Relaxed));
    }
}
