//! The process-wide handler of `SIGBUS`: a fault in a live mapping becomes zeros and a note.
//!
//! Why: reading a mapped page that the file no longer has, or that its device cannot read, raises
//! `SIGBUS`, whose default is to end the process without a word. Here the page is replaced by zeros,
//! the fault is noted (`fault_table.rs`), and the load is repeated; whoever reads through the mapping
//! asks for the note.
//!
//! Invariants:
//! 1. Between entry and return only async-signal-safe things happen: atomics, `mmap`, `sigaction`.
//!    `errno` is put back.
//! 2. A fault outside every live mapping, and a signal sent by a process, go where they went before:
//!    to the handler that was installed, else to the default. That handler runs with the mask of
//!    this one. Rust's own (for stack overflows) restores the default, so a `SIGBUS` sent to the
//!    process by `kill` ends this protection, and the next one ends the process.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t};

use crate::fault_table::{self, Hole};

/// The errno of installing the handler, if that failed.
static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
/// What was installed before; set before the handler is.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
/// The machine's page size; set before the handler is installed.
static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);

type PlainHandler = extern "C" fn(c_int);
type InfoHandler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// Installs the handler, the first time it is called.
pub(crate) fn install() -> io::Result<()> {
    INSTALLED
        .get_or_init(|| try_install().map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL)))
        .map_err(io::Error::from_raw_os_error)
}

/// The machine's page size in bytes, a power of two.
pub(crate) fn page_size() -> usize {
    match PAGE_SIZE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: sysconf reads no memory of ours.
            let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let size = usize::try_from(size).ok().filter(|size| size.is_power_of_two());
            let size = size.unwrap_or(4096);
            PAGE_SIZE.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}

fn try_install() -> io::Result<()> {
    page_size();
    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with no new action the call only writes the old one, into a place of its type.
    let asked = unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), previous.as_mut_ptr()) };
    succeeded(asked)?;
    // SAFETY: the call succeeded, so it wrote the action; the zeros before it were a valid one too.
    let previous = unsafe { previous.assume_init() };
    PREVIOUS.get_or_init(|| previous);

    // SAFETY: all fields of this plain C structure may be zero: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = on_sigbus as InfoHandler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the action is initialized, and its handler has the signature that SA_SIGINFO asks for
    // and does only what a handler may (invariant 1).
    succeeded(unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) })
}

fn succeeded(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

extern "C" fn on_sigbus(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel calls a SA_SIGINFO handler with a pointer to a valid siginfo_t.
    let code = unsafe { (*info).si_code };
    // No page of the file here, or its memory is broken; all other codes are not about one access.
    let by_access = code == libc::BUS_ADRERR || code == libc::BUS_MCEERR_AR;
    // SAFETY: as above; the address field is set for both codes, and is plain data for any other.
    let address = unsafe { (*info).si_addr() } as usize;
    if by_access && survive(address) {
        return;
    }
    pass_on(signal, info, context, code);
}

/// Whether the fault was a live mapping's and its page now reads as zeros.
fn survive(address: usize) -> bool {
    // SAFETY: the location of the thread's errno is valid in the thread.
    let errno = unsafe { *libc::__errno_location() };
    let hole = fault_table::record_fault(address, PAGE_SIZE.load(Ordering::Relaxed));
    let survived = hole.is_some_and(fill_with_zeros);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    survived
}

fn fill_with_zeros(hole: Hole) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let place = std::ptr::without_provenance_mut::<c_void>(hole.address);
    // A store that faulted is repeated as a load is: it must find a page that takes it.
    let write = if hole.writable { libc::PROT_WRITE } else { 0 };
    // SAFETY: the hole lies within a live mapping (fault_table.rs, invariant 3), so MAP_FIXED
    // replaces pages that a `Mapping` or a `WritableMapping` owns and nothing else; they stay readable (and
    // writable), and `munmap` of the whole mapping removes these too. What the change means to slices lent
    // from the mapping is told at `Mapping`; the other one lends none. No errno but the saved one is touched.
    let mapped = unsafe { libc::mmap(place, hole.len, libc::PROT_READ | write, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

/// Does what would have been done without this handler.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void, code: c_int) {
    let Some(previous) = PREVIOUS.get() else { return restore_default(signal) };
    match previous.sa_sigaction {
        libc::SIG_DFL => restore_default(signal),
        // A process may ignore a signal that is sent to it, but not a fault.
        libc::SIG_IGN if code <= 0 => {}
        libc::SIG_IGN => restore_default(signal),
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: an action with SA_SIGINFO that is neither default nor ignore holds the address
            // of a function of this type; it gets what the kernel gave us.
            let handler = unsafe { std::mem::transmute::<usize, InfoHandler>(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: as above, of this type without SA_SIGINFO.
            let handler = unsafe { std::mem::transmute::<usize, PlainHandler>(handler) };
            handler(signal);
        }
    }
}

/// Lets the default end the process: a fault happens again on return, a sent signal is sent again.
fn restore_default(signal: c_int) {
    // SAFETY: all fields of this plain C structure may be zero; a zero handler is SIG_DFL.
    let default: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the action is initialized, and no old one is asked for; both calls are
    // async-signal-safe. The raised signal is blocked until this handler returns.
    unsafe {
        libc::sigaction(signal, &default, std::ptr::null_mut());
        libc::raise(signal);
    }
}
