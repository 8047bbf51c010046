//! What this kernel, file system and sandbox offer, found out by trying, and never assumed.
//!
//! [`device`] tells where a path lies: file system, block devices, mirrors.

mod block_device;
pub mod device;
mod machine;
mod mounts;
