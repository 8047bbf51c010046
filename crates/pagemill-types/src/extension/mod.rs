//! Types of extensions whose layouts are known and stable: a table of them, told by the library of their output function and
//! their name.
//!
//! What else an extension brings is refused, or shown in hex: its output is the extension's own code. Functions are told by their
//! library and the name of their C function.

pub mod arguments;
pub mod arrays;
pub mod call;
pub mod cube;
#[cfg(test)]
mod extension_tests;
pub mod fuzzystrmatch;
pub mod geometry;
pub mod hstore;
pub mod intarray;
pub mod ltree;
pub mod seg;
pub mod server_sort;
pub mod trigrams;
pub mod uuid_ossp;
pub mod vector;

use pagemill_format::PgVersion;

use super::ScalarWriter;
use super::decode::Decode;
use super::input::ScalarReader;
use call::ExtensionFunction;

/// A type of an extension.
#[derive(Debug)]
pub struct ExtensionType {
    /// The library's name without its directory, and without a version behind a hyphen.
    library: &'static str,
    /// `typname`.
    name: &'static str,
    /// Appends a value's text, as the type's output function prints it.
    pub write: ScalarWriter,
    /// Its input function, as a version has it; `None` where that is not known.
    read: Option<fn(PgVersion) -> ScalarReader>,
    /// What its values are.
    pub decode: Decode,
}

impl ExtensionType {
    /// All types that are known.
    pub fn all() -> &'static [Self] {
        EXTENSION_TYPES
    }

    /// The type of this name whose output function is in this library (`$libdir/postgis-3`, say).
    pub fn find(library: &[u8], name: &[u8]) -> Option<&'static Self> {
        let base = base_name(library);
        EXTENSION_TYPES
            .iter()
            .find(|one| one.library.as_bytes() == base && one.name.as_bytes() == name)
    }
}

impl ExtensionType {
    /// Appends the payload that a text says, as the type's input function of this version reads it; `None` where that is not known.
    pub fn read_in(&self, version: PgVersion) -> Option<ScalarReader> {
        self.read.map(|read| read(version))
    }
}

/// A library's name without its directory, and without a version behind a hyphen.
fn base_name(library: &[u8]) -> &[u8] {
    let file = library.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    file.split(|byte| *byte == b'-').next().unwrap_or_default()
}

/// The libraries whose functions are known.
const LIBRARIES: &[(&str, &[ExtensionFunction])] = &[
    ("_int", intarray::FUNCTIONS),
    ("cube", cube::FUNCTIONS),
    ("fuzzystrmatch", fuzzystrmatch::FUNCTIONS),
    ("hstore", hstore::FUNCTIONS),
    ("ltree", ltree::FUNCTIONS),
    ("pg_trgm", trigrams::FUNCTIONS),
    ("seg", seg::FUNCTIONS),
    ("uuid", uuid_ossp::FUNCTIONS),
];

/// All functions that are known.
pub fn functions() -> impl Iterator<Item = &'static ExtensionFunction> {
    LIBRARIES.iter().flat_map(|(_, functions)| *functions)
}

/// The function of this symbol (`pg_proc.prosrc`) in a library (`pg_proc.probin`).
pub fn function(library: &[u8], symbol: &[u8]) -> Option<&'static ExtensionFunction> {
    let base = base_name(library);
    let (_, functions) = LIBRARIES.iter().find(|(name, _)| name.as_bytes() == base)?;
    functions.iter().find(|one| one.symbol.as_bytes() == symbol)
}

const EXTENSION_TYPES: &[ExtensionType] = &[
    ExtensionType {
        library: "cube",
        name: "cube",
        write: cube::write_cube,
        read: Some(|_| cube::read_cube),
        decode: Decode::Other,
    },
    ExtensionType {
        library: "seg",
        name: "seg",
        write: seg::write_seg,
        read: Some(|_| seg::read_seg),
        decode: Decode::Other,
    },
    ExtensionType {
        library: "hstore",
        name: "hstore",
        write: hstore::write_hstore,
        read: Some(|version| match version {
            PgVersion::V14 | PgVersion::V15 => hstore::read_hstore,
            _ => hstore::read_hstore_16,
        }),
        decode: Decode::Hstore,
    },
    ExtensionType {
        library: "ltree",
        name: "ltree",
        write: ltree::write_ltree,
        read: Some(|version| match version {
            PgVersion::V14 | PgVersion::V15 => ltree::read_ltree::<15>,
            PgVersion::V18 => ltree::read_ltree::<18>,
            _ => ltree::read_ltree::<17>,
        }),
        decode: Decode::Other,
    },
    ExtensionType {
        library: "ltree",
        name: "lquery",
        write: ltree::write_lquery,
        read: Some(|version| match version {
            PgVersion::V14 | PgVersion::V15 => ltree::read_lquery::<15>,
            PgVersion::V18 => ltree::read_lquery::<18>,
            _ => ltree::read_lquery::<17>,
        }),
        decode: Decode::Other,
    },
    ExtensionType {
        library: "ltree",
        name: "ltxtquery",
        write: ltree::write_ltxtquery,
        read: Some(|version| match version {
            PgVersion::V14 | PgVersion::V15 => ltree::read_ltxtquery::<15>,
            PgVersion::V18 => ltree::read_ltxtquery::<18>,
            _ => ltree::read_ltxtquery::<17>,
        }),
        decode: Decode::Other,
    },
    ExtensionType {
        library: "_int",
        name: "query_int",
        write: intarray::query::write_query_int,
        read: Some(|_| intarray::query::read_query_int),
        decode: Decode::Other,
    },
    ExtensionType {
        library: "vector",
        name: "vector",
        write: vector::write_vector,
        read: None,
        decode: Decode::Vector32,
    },
    ExtensionType {
        library: "postgis",
        name: "geometry",
        write: geometry::write_geometry,
        read: None,
        decode: Decode::Geometry,
    },
    ExtensionType {
        library: "postgis",
        name: "geography",
        write: geometry::write_geometry,
        read: None,
        decode: Decode::Geometry,
    },
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_type_is_told_by_its_library_and_its_name() {
        let find = |library: &str, name: &str| {
            ExtensionType::find(library.as_bytes(), name.as_bytes()).map(|found| found.name)
        };
        assert_eq!(find("$libdir/hstore", "hstore"), Some("hstore"));
        assert_eq!(find("$libdir/postgis-3", "geometry"), Some("geometry"));
        assert_eq!(find("postgis-3.4", "geography"), Some("geography"));
        assert_eq!(find("$libdir/mine", "hstore"), None);
        assert_eq!(find("$libdir/hstore", "ghstore"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_a_text_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..200), small in prop::collection::vec(0u8..4, 0..60),
        ) {
            for one in EXTENSION_TYPES {
                let _ = (one.write)(&bytes, &mut Vec::new());
                let _ = (one.write)(&small, &mut Vec::new());
                let _ = (one.write)(&[&small[..], &bytes].concat(), &mut Vec::new());
            }
        }
    }
}
