#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod block_queue;
pub mod buffer_pool;
mod distances;
mod method_choice;
pub mod method_use;
pub mod page_cache;
pub mod page_reader;
pub mod read_stream;
mod readahead_advice;
pub mod scan_order;
mod steady_write_back;
mod write_method_choice;
pub mod write_stream;
mod write_windows;

pub use buffer_pool::{BufferPool, NoUnpinnedBuffers, PageKey, PinnedPage, Ring, Strategy};
pub use method_use::MethodUse;
pub use page_cache::PageCache;
pub use page_reader::PageReader;
pub use read_stream::{
    DEFAULT_IO_COMBINE_LIMIT, MAX_IO_COMBINE_LIMIT, ReadStream, ReadStreamOptions, Run,
};
pub use scan_order::ScanOrder;
pub use write_method_choice::create_fork;
pub use write_stream::{
    DEFAULT_WRITE_COMBINE_LIMIT, DEFAULT_WRITES_IN_FLIGHT, WalFlush, WriteStream,
    WriteStreamOptions,
};
