#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod contents;
mod drive;
pub mod faults;
mod hard_disk;
mod kernel_settings;
mod machine;
mod page_cache;
mod page_reads;
pub mod power_cut;
mod readahead;
pub mod remote_fleet;
mod request_queue;
pub mod seed;
pub mod seq_scan_2009;
mod simulated_disk;
mod simulated_queue;
mod solid_state;
mod volume;

pub use contents::Contents;
pub use faults::{Call, Fault, Faults};
pub use hard_disk::HardDiskSheet;
pub use kernel_settings::KernelSettings;
pub use power_cut::{Loss, PowerCutFileSystem, WriteFault};
pub use request_queue::DriveCount;
pub use simulated_disk::SimulatedDisk;
pub use solid_state::{CloudSheet, NvmeSheet};
pub use volume::{Balance, DriveSheet, VolumeModel};
