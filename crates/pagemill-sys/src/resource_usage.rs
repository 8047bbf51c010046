//! What a process and its children used so far: `getrusage(2)`, which rustix does not offer.
//!
//! Why not `/proc`: its processor times come in hundredths of a second, too coarse for short work.
//!
//! Invariant: each number only grows while the process lives.

use std::io;
use std::time::Duration;

/// Whose use is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageOf {
    /// All threads of this process, those that ended included.
    Process,
    /// Children that ended and were waited for, and theirs.
    Children,
}

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Page faults that needed none.
    pub minor_faults: u64,
}

/// Asks what was used so far.
///
/// # Errors
/// What the system reports; none is known for these arguments.
pub fn resource_usage(of: UsageOf) -> io::Result<ResourceUsage> {
    let who = match of {
        UsageOf::Process => libc::RUSAGE_SELF,
        UsageOf::Children => libc::RUSAGE_CHILDREN,
    };
    // SAFETY: `rusage` is made of integers, for all of which zero is a value.
    let mut found: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes one `rusage` to a live value borrowed mutably, and does not keep the pointer.
    if unsafe { libc::getrusage(who, &raw mut found) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    Ok(ResourceUsage {
        user: duration(found.ru_utime),
        system: duration(found.ru_stime),
        major_faults: count(found.ru_majflt),
        minor_faults: count(found.ru_minflt),
    })
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_is_in_the_use_of_its_process() {
        let used = |usage: ResourceUsage| usage.user + usage.system;
        let before = used(resource_usage(UsageOf::Process).unwrap());
        std::thread::spawn(
            move || {
                while used(resource_usage(UsageOf::Process).unwrap()) <= before {}
            },
        )
        .join()
        .unwrap();
        assert!(used(resource_usage(UsageOf::Process).unwrap()) > before);
        assert!(resource_usage(UsageOf::Children).is_ok());
    }
}
