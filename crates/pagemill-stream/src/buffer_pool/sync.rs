//! The locks and counters the pool is made of: the standard library's, or loom's when the pool is
//! checked by it, which tries every order in which threads can meet at them.
//!
//! Nothing that a lock of the pool guards is ever left half changed by a panic: loads run without
//! one. So a poisoned lock is taken as any other.
//!
//! `SharedArc` is the `Arc` whose count decides something. The pool itself is in a plain one.

#[cfg(all(test, loom))]
pub(super) use loom::sync::{
    Arc as SharedArc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::{
    Arc as SharedArc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use std::sync::PoisonError;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits, with the lock given up meanwhile, until the condition is told of; or for no reason.
pub(super) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
