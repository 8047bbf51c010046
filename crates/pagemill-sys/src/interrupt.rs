//! Whether the process was asked to end: `SIGINT`, `SIGTERM` and `SIGHUP` noted instead of followed at once.
//!
//! Why: work that makes many files removes them again when it is given up, which a process that just ends cannot.
//!
//! Invariants: the handler stores to one atomic and does nothing else; a signal that was ignored when the process
//! began (`nohup`, a job in the background) stays so; the second of a kind ends the process as it would have
//! without this.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::c_int;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Notes the first of each of these signals from now on. Calls that wait return early (EINTR) then.
///
/// # Errors
/// What the system reports; there is no such reason known.
pub fn catch_interrupts() -> io::Result<()> {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().try_for_each(catch)
}

/// True once one of them came.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

extern "C" fn note(_signal: c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

fn catch(signal: c_int) -> io::Result<()> {
    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with no new action the call only writes the old one, into a place of its type.
    succeeded(unsafe { libc::sigaction(signal, std::ptr::null(), previous.as_mut_ptr()) })?;
    // SAFETY: the call succeeded, so it wrote the action; the zeros before it were a valid one too.
    if unsafe { previous.assume_init() }.sa_sigaction == libc::SIG_IGN {
        return Ok(());
    }
    // SAFETY: all fields of this plain C structure may be zero: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = note as extern "C" fn(c_int) as usize;
    action.sa_flags = libc::SA_RESETHAND;
    // SAFETY: the action is initialized, and its handler has the signature of a plain one and only stores to an
    // atomic, which may be done in a handler.
    succeeded(unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) })
}

fn succeeded(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone;

    #[test]
    fn the_first_signal_is_noted_and_the_second_ends_the_process() {
        use std::os::unix::process::ExitStatusExt as _;
        let status = alone::run("interrupt::tests::signals_alone").unwrap();
        assert_eq!(status.signal(), Some(libc::SIGTERM));
    }

    #[test]
    fn signals_alone() {
        if !alone::is_alone() {
            return;
        }
        catch_interrupts().unwrap();
        assert!(!interrupted());
        // SAFETY: raise takes no pointer; the handler for the signal was installed above.
        assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        assert!(interrupted());
        // SAFETY: as above; the default action is back, which ends this process, as it is meant to.
        unsafe { libc::raise(libc::SIGTERM) };
    }
}
