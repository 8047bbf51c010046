#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod page_cache;
pub mod read_stream;

pub use page_cache::PageCache;
pub use read_stream::{
    DEFAULT_IO_COMBINE_LIMIT, MAX_IO_COMBINE_LIMIT, ReadStream, ReadStreamOptions,
};
