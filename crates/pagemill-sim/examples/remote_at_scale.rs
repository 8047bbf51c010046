//! Prints how 10 TB on an object store are read by fleets of workers, as a model: the table of the guide.
//!
//! `cargo run --release -p pagemill-sim --example remote_at_scale`

use pagemill_sim::remote_fleet::tables;

fn main() {
    print!("{}", tables::table());
}
