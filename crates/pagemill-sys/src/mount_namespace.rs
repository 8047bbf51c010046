//! A view of the mounts that one thread has for itself: what it mounts nobody else sees, and ends with it.
//!
//! Why: a tiny file system for an experiment must not stay behind when the process is killed.
//!
//! Invariant: the mounts of the rest of the process and of the system are not changed.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Gives the calling thread, and those it starts from now on, mounts of its own, for good: what they mount is gone when the
/// last of them ends. What others mount meanwhile is seen as before.
///
/// # Errors
/// What the kernel reports: EPERM without the right to mount. The thread's view of the mounts may be its own by then.
pub fn own_mounts_for_thread() -> io::Result<()> {
    // SAFETY: the call takes no pointer, and changes what this thread sees of mounts and of its working directory only.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let (none, root) = (c"none".as_ptr(), c"/".as_ptr());
    let one_way = libc::MS_REC | libc::MS_SLAVE;
    // SAFETY: the strings are static and end with a zero byte; file system and data may be null for this change.
    check(unsafe { libc::mount(none, root, std::ptr::null(), one_way, std::ptr::null()) })
}

/// Gives the calling thread mounts of its own, and mounts a file system in memory of at most so many bytes
/// on a directory there. It is gone when the thread ends.
///
/// # Errors
/// As [`own_mounts_for_thread`].
pub fn mount_memory_for_thread(directory: &Path, bytes: u64) -> io::Result<()> {
    own_mounts_for_thread()?;
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let directory = CString::new(directory.as_os_str().as_bytes()).map_err(invalid)?;
    let size = CString::new(format!("size={bytes}")).map_err(invalid)?;
    let tmpfs = c"tmpfs".as_ptr();
    let flags = libc::MS_NODEV | libc::MS_NOSUID | libc::MS_NOEXEC;
    // SAFETY: all strings are alive and end with a zero byte; the kernel keeps none of the pointers.
    check(unsafe { libc::mount(tmpfs, directory.as_ptr(), tmpfs, flags, size.as_ptr().cast()) })
}

fn check(outcome: libc::c_int) -> io::Result<()> {
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_sees_what_the_thread_has_mounted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_path_buf();
        let seen = std::thread::spawn(move || {
            mount_memory_for_thread(&path, 1 << 20)?;
            std::fs::write(path.join("file"), vec![1; 2 << 20]).map_err(|error| error.kind()).err();
            io::Result::Ok(path.join("file").exists())
        })
        .join()
        .unwrap();
        match seen {
            Ok(exists) => assert!(exists),
            Err(error) => eprintln!("skipped: no right to mount: {error}"),
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
