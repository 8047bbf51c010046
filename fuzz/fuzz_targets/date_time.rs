//! Dates, times and intervals of any text, in every version; and time zones of any bytes.
//!
//! What comes before the first NUL is the text, what follows it a compiled zone, which is then the
//! session's.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use pagemill_format::PgVersion;
use pagemill_types::input::datetime::{
    DateOrder, DateTimeContext, DateTimeReader, IntervalStyle, ZoneLookup, read_date,
    read_interval, read_time, read_timestamp, read_timestamptz, read_timetz,
};
use pagemill_types::time_zone::Zone;

const READERS: [DateTimeReader; 6] =
    [read_date, read_time, read_timetz, read_timestamp, read_timestamptz, read_interval];

/// Rules in POSIX's notation only.
struct Rules;

impl ZoneLookup for Rules {
    fn zone(&self, name: &str) -> Option<Arc<Zone>> {
        Zone::from_posix(name.to_ascii_uppercase().as_bytes()).map(Arc::new)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (text, file) = bytes.split_at(end);
    let zone = Zone::from_tzif(file.get(1..).unwrap_or_default()).unwrap_or_else(|_| Zone::gmt());
    let mut context = DateTimeContext {
        version: PgVersion::V14,
        date_order: DateOrder::Mdy,
        interval_style: IntervalStyle::SqlStandard,
        session_zone: Arc::new(zone),
        zones: Arc::new(Rules),
        transaction_start: 0,
    };
    let mut out = Vec::new();
    for version in PgVersion::ALL {
        context.version = version;
        for read in READERS {
            for typmod in [-1, 3, 0x1C08_0003] {
                out.clear();
                let _ = read(text, typmod, &context, &mut out);
            }
        }
    }
});
