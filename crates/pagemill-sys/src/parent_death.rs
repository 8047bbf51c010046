//! Child processes that do not outlive the one that starts them: `PR_SET_PDEATHSIG` (prctl(2)).
//!
//! Why: a process that is killed can stop nothing that it started.
//!
//! Invariant: the child runs its program only with the signal set, and only while the process that started it lives.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// What a child is sent when the thread that started it is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndSignal {
    /// SIGTERM.
    Terminate,
    /// SIGQUIT.
    Quit,
}

impl EndSignal {
    fn number(self) -> libc::c_int {
        match self {
            Self::Terminate => libc::SIGTERM,
            Self::Quit => libc::SIGQUIT,
        }
    }
}

/// Has what `command` starts be sent the signal when the thread that starts it ends, however it ends. A program that changes
/// its account when it is run is not sent it.
pub fn end_with_parent(command: &mut Command, signal: EndSignal) {
    let parent = libc::pid_t::try_from(std::process::id()).unwrap_or(-1);
    // The system takes an unsigned long.
    let signal = signal.number() as libc::c_ulong;
    let set = move || {
        // SAFETY: the call takes integers only, and changes nothing but what this process is sent.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call takes nothing and cannot fail.
        match unsafe { libc::getppid() } == parent {
            true => Ok(()),
            // It ended in between, and sends nothing any more.
            false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls, which are async-signal-safe, and looks at numbers
    // that it owns: it takes no lock and allocates nothing, an error with a number included.
    unsafe { command.pre_exec(set) };
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_child_ends_with_the_thread_that_started_it_and_not_before() {
        let start = || {
            let mut command = Command::new("sleep");
            command.arg("60").stdin(Stdio::null());
            // Not SIGQUIT, which whoever is started in the background may ignore.
            end_with_parent(&mut command, EndSignal::Terminate);
            let mut child = command.spawn().unwrap();
            std::thread::sleep(Duration::from_millis(30));
            assert!(child.try_wait().unwrap().is_none());
            child
        };
        let begin = Instant::now();
        let mut child = std::thread::spawn(start).join().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGTERM));
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
