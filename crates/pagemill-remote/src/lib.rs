#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod aws_profile;
mod connect;
mod directories;
mod disk_cache;
mod earlier_listings;
pub mod error;
mod folder;
mod foresight;
mod http_requests;
mod object;
mod parts;
mod pieces;
mod refusals;
mod remote_file;
mod remote_files;
mod remote_queue;
mod request_counts;
mod retry;
mod runtime;
#[cfg(test)]
mod tests;
mod url;

pub use error::RemoteError;
pub use folder::{ObjectFolder, ObjectOutput};
pub use remote_files::{RemoteFiles, RemoteOptions};
pub use request_counts::RequestSnapshot;
pub use retry::RetryPolicy;
