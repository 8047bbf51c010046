//! The names of the system's errors, as manuals print them.
//!
//! Why: "EOPNOTSUPP" can be looked up, and a script can compare it; the system's sentence changes with
//! the C library and the locale. Only what the tried calls can return has a name here; the rest is a
//! number.

use std::io;

use rustix::io::Errno;

const NAMES: [(Errno, &str); 24] = [
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::INTR, "EINTR"),
    (Errno::IO, "EIO"),
    (Errno::BADF, "EBADF"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::FAULT, "EFAULT"),
    (Errno::EXIST, "EEXIST"),
    (Errno::XDEV, "EXDEV"),
    (Errno::NODEV, "ENODEV"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::NFILE, "ENFILE"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NOTTY, "ENOTTY"),
    (Errno::FBIG, "EFBIG"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::SPIPE, "ESPIPE"),
    (Errno::ROFS, "EROFS"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::DQUOT, "EDQUOT"),
];

/// The name of an error, or its number.
pub(super) fn name(errno: Errno) -> String {
    let known = NAMES.iter().find(|(known, _)| *known == errno);
    known.map_or_else(|| format!("errno {}", errno.raw_os_error()), |(_, name)| (*name).to_owned())
}

/// The system's error within `error`; one that does not come from the system is EIO.
pub(super) fn of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_name_of_the_manual_or_its_number() {
        assert_eq!(name(Errno::OPNOTSUPP), "EOPNOTSUPP");
        assert_eq!(name(Errno::from_raw_os_error(133)), "errno 133");
        assert_eq!(name(of(&io::Error::from_raw_os_error(38))), "ENOSYS");
        assert_eq!(name(of(&io::Error::other("x"))), "EIO");
    }
}
