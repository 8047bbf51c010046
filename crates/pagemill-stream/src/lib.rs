#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod block_queue;
mod distances;
mod method_choice;
pub mod page_cache;
pub mod read_stream;
mod readahead_advice;

pub use page_cache::PageCache;
pub use read_stream::{
    DEFAULT_IO_COMBINE_LIMIT, MAX_IO_COMBINE_LIMIT, ReadStream, ReadStreamOptions,
};
