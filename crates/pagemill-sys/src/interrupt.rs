//! A wish to stop, from the terminal or from whoever ends processes.
//!
//! Work that made files has to remove them before it ends. Two ways:
//!
//! ```text
//! watch_interrupts   the handler stores the signal; long work looks at it and undoes itself by ordinary code
//! remove_on_signal   the handler removes one file and lets the signal end the process: for work that never looks
//! ```
//!
//! A program that lives on after the work was stopped, as a shell does, [watches the key](watch_interrupt_key) instead.
//!
//! Afterwards [`end_by`] ends the process by the signal itself, so that a shell sees what happened (128 + its number).
//!
//! Invariants: the handlers do nothing but load and store atomics, `unlink`, `signal` and `raise`, which are
//! async-signal-safe; each is called once for each signal, the second one of a kind ends the process as if nobody had
//! listened (but for the watched key, which may be pressed any number of times); calls that were under way are made again (`SA_RESTART`); a signal that was ignored stays ignored.

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

/// Set by the handler.
static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Which signal it was that came first; 0 for none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// What asks a process to end.
const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Names of files that are removed when a signal ends the process. A name that was put here is never freed: the
/// handler may be reading it.
static REMOVED_BY_SIGNAL: [AtomicPtr<c_char>; 8] = [const { AtomicPtr::new(ptr::null_mut()) }; 8];

extern "C" fn on_signal(signal: c_int) {
    // The one that came first is told.
    let _ = SIGNAL.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
    REQUESTED.store(true, Ordering::Relaxed);
}

extern "C" fn on_ending_signal(signal: c_int) {
    for name in &REMOVED_BY_SIGNAL {
        let name = name.swap(ptr::null_mut(), Ordering::AcqRel);
        if !name.is_null() {
            // SAFETY: a name in the table is a string with its zero that is never freed.
            unsafe { libc::unlink(name) };
        }
    }
    // SAFETY: both calls take numbers; the signal has its default action again, and ends the process when this returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP set the flag that is returned, the first time each of them comes. One that
/// was ignored when the process began stays ignored, as nohup wants it.
///
/// # Errors
/// What the system reports.
pub fn watch_interrupts() -> io::Result<&'static AtomicBool> {
    for signal in SIGNALS {
        handle(signal, on_signal, |action| action != libc::SIG_IGN)?;
    }
    Ok(&REQUESTED)
}

/// True once one of them came.
pub fn interrupted() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// The signal that came first, of those that are [watched](watch_interrupts).
pub fn interrupted_by() -> Option<i32> {
    Some(SIGNAL.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
}

/// Set by each press of the key.
static KEY_PRESSED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_key(_: c_int) {
    KEY_PRESSED.store(true, Ordering::Relaxed);
}

/// From now on SIGINT, which the terminal sends for Ctrl-C, never ends the process but is told by
/// [`take_interrupt_key`], each time anew. One that was ignored when the process began stays ignored.
///
/// # Errors
/// What the system reports.
pub fn watch_interrupt_key() -> io::Result<()> {
    install(libc::SIGINT, on_key, libc::SA_RESTART, |action| action != libc::SIG_IGN)
}

/// True once for each time that the watched key was pressed since the last call.
pub fn take_interrupt_key() -> bool {
    KEY_PRESSED.swap(false, Ordering::Relaxed)
}

/// Ends this process by a signal, as if nobody had listened for it. Where the signal does not end it (the first
/// process of a container), the exit status is the one that shells give for it.
pub fn end_by(signal: i32) -> ! {
    // SAFETY: both calls take numbers only.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    std::process::exit(128 + signal)
}

/// The file `path` is removed when SIGINT, SIGTERM or SIGHUP ends the process, as long as what is returned lives.
/// Nothing where the signals are watched already, as then the work undoes itself; or where too many are asked for.
///
/// # Errors
/// What the system reports, and [`io::ErrorKind::InvalidInput`] for a name with a zero in it.
pub fn remove_on_signal(path: &Path) -> io::Result<RemovedOnSignal> {
    static HANDLED: Once = Once::new();
    let name = CString::new(path.as_os_str().as_bytes())?.into_raw();
    let put = |slot: &&AtomicPtr<c_char>| {
        slot.compare_exchange(ptr::null_mut(), name, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let Some(slot) = REMOVED_BY_SIGNAL.iter().find(put) else {
        // SAFETY: the name came from `into_raw`, and no slot took it.
        drop(unsafe { CString::from_raw(name) });
        return Ok(RemovedOnSignal { slot: None, name: ptr::null_mut() });
    };
    let mut handled = Ok(());
    HANDLED.call_once(|| {
        let is_default = |action| action == libc::SIG_DFL;
        handled = SIGNALS.iter().try_for_each(|&s| handle(s, on_ending_signal, is_default));
    });
    handled.map(|()| RemovedOnSignal { slot: Some(slot), name })
}

/// See [`remove_on_signal`].
#[derive(Debug)]
pub struct RemovedOnSignal {
    slot: Option<&'static AtomicPtr<c_char>>,
    /// Only compared.
    name: *mut c_char,
}

// SAFETY: the name is compared and never read through.
unsafe impl Send for RemovedOnSignal {}
// SAFETY: as above.
unsafe impl Sync for RemovedOnSignal {}

impl Drop for RemovedOnSignal {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            let taken = ptr::null_mut();
            // The handler may have taken it already.
            let _ = slot.compare_exchange(self.name, taken, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// A write beyond the limit of file sizes (`ulimit -f`) fails from now on (EFBIG), and does not end the process.
pub fn survive_file_size_limit() {
    // SAFETY: ignoring a signal takes no pointer.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Installs a handler for one signal of a kind, where the action in force is one that may be replaced.
fn handle(
    signal: c_int,
    handler: extern "C" fn(c_int),
    may_replace: impl Fn(libc::sighandler_t) -> bool,
) -> io::Result<()> {
    install(signal, handler, libc::SA_RESTART | libc::SA_RESETHAND, may_replace)
}

fn install(
    signal: c_int,
    handler: extern "C" fn(c_int),
    flags: c_int,
    may_replace: impl Fn(libc::sighandler_t) -> bool,
) -> io::Result<()> {
    // SAFETY: an all-zero `sigaction` is a valid one: the default action, an empty mask, no flags.
    let (mut wanted, mut before): (libc::sigaction, libc::sigaction) =
        unsafe { std::mem::zeroed() };
    // SAFETY: the call writes the action in force to a live value, and with a null pointer changes nothing.
    if unsafe { libc::sigaction(signal, ptr::null(), &raw mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if !may_replace(before.sa_sigaction) {
        return Ok(());
    }
    wanted.sa_sigaction = handler as libc::sighandler_t;
    wanted.sa_flags = flags;
    // SAFETY: the action is a live value with a handler of the type that these flags call for; the handlers make only
    // calls that are async-signal-safe.
    match unsafe { libc::sigaction(signal, &raw const wanted, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;
    use crate::own_process;

    fn ends_well(test: &str) {
        let status = own_process::run(&format!("interrupt::tests::{test}")).unwrap();
        assert!(status.success(), "{status}");
    }

    #[test]
    fn a_signal_sets_the_flag_and_does_not_end_the_process() {
        ends_well("alone_a_signal_is_sent");
    }

    #[test]
    fn the_key_is_told_each_time_and_never_ends_the_process() {
        ends_well("alone_the_key_is_pressed");
    }

    #[test]
    fn alone_the_key_is_pressed() {
        if !own_process::is_alone() {
            return;
        }
        watch_interrupt_key().unwrap();
        for _ in 0..3 {
            assert!(!take_interrupt_key());
            // SAFETY: raising a signal takes no pointer.
            unsafe { libc::raise(libc::SIGINT) };
            assert!(take_interrupt_key());
        }
    }

    #[test]
    fn what_was_ignored_stays_ignored() {
        ends_well("alone_an_ignored_signal_is_sent");
    }

    #[test]
    fn a_signal_that_ends_the_process_takes_a_file_along_and_only_that() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["removed", "released"].map(|name| dir.path().join(name));
        names.iter().for_each(|name| std::fs::write(name, "x").unwrap());
        let test = "interrupt::tests::alone_a_signal_takes_a_file_along";
        let status = own_process::run_with(test, "DIRECTORY", dir.path()).unwrap();
        assert_eq!(status.signal(), Some(libc::SIGTERM), "{status}");
        assert_eq!(names.map(|name| name.exists()), [false, true]);
    }

    #[test]
    fn alone_a_signal_takes_a_file_along() {
        if !own_process::is_alone() {
            return;
        }
        let dir = std::path::PathBuf::from(std::env::var_os("DIRECTORY").unwrap());
        drop(remove_on_signal(&dir.join("released")).unwrap());
        let _kept = remove_on_signal(&dir.join("removed")).unwrap();
        // SAFETY: raising a signal takes no pointer.
        unsafe { libc::raise(libc::SIGTERM) };
        panic!("the signal did not end the process");
    }

    #[test]
    fn alone_a_signal_is_sent() {
        if !own_process::is_alone() {
            return;
        }
        let flag = watch_interrupts().unwrap();
        assert!(!flag.load(Ordering::Relaxed));
        // SAFETY: raising a signal that has a handler takes no pointer.
        unsafe { libc::raise(libc::SIGTERM) };
        assert!(flag.load(Ordering::Relaxed));
        assert_eq!(interrupted_by(), Some(libc::SIGTERM));
    }

    #[test]
    fn alone_an_ignored_signal_is_sent() {
        if !own_process::is_alone() {
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
