//! `pg_filenode.map`: the file numbers of the catalogs whose own `pg_class` row cannot say them.
//!
//! There is one in `global/` for the shared catalogs and one in each database's directory; with
//! it begins every search for a table, since `pg_class` itself is in it.
//!
//! Up to 15 the file has 62 slots and, after its CRC-32C, four bytes of padding (512 bytes); from
//! 16 on 64 slots and no padding (524 bytes). The size tells them apart, so no version is asked
//! for. Slots past the count are not read. Entries are in no order; there are few.
//!
//! Source: `src/backend/utils/cache/relmapper.c`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::Oid;
use crate::reader::Reader;

const STRUCTURE: &str = "pg_filenode.map";
const MAGIC: u32 = 0x0059_2717;
const HEADER_BYTES: usize = 8;
const SLOT_BYTES: usize = 8;
const CRC_BYTES: usize = 4;

/// Slots up to version 15.
const SLOTS_TO_15: usize = 62;
/// Slots from version 16 on.
const SLOTS_FROM_16: usize = 64;
const BYTES_TO_15: usize = HEADER_BYTES + SLOTS_TO_15 * SLOT_BYTES + CRC_BYTES + 4;
const BYTES_FROM_16: usize = HEADER_BYTES + SLOTS_FROM_16 * SLOT_BYTES + CRC_BYTES;
const _: () = assert!(BYTES_TO_15 == 512 && BYTES_FROM_16 == 524);

/// Which file holds which mapped catalog.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RelationMap {
    entries: Vec<(Oid, u32)>,
}

impl RelationMap {
    /// Reads a whole `pg_filenode.map`.
    ///
    /// # Errors
    /// Corrupt: a size, magic number, count or CRC that no version writes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let slots = slots(bytes.len())?;
        let mut r = Reader::new(STRUCTURE, bytes);
        let magic = r.u32()?;
        if magic != MAGIC {
            let what = format!("magic number {magic:08X} where {MAGIC:08X} belongs");
            return Err(Error::corrupt(STRUCTURE, 0, what));
        }
        check_crc(bytes, HEADER_BYTES + slots * SLOT_BYTES)?;
        let count = r.u32()? as usize;
        if count > slots {
            return Err(Error::corrupt(STRUCTURE, 4, format!("{count} mappings in {slots} slots")));
        }
        let entries = (0..count).map(|_| Ok((Oid(r.u32()?), r.u32()?))).collect::<Result<_>>()?;
        Ok(Self { entries })
    }

    /// The file number of the relation `oid`, if it is a mapped one.
    pub fn filenode(&self, oid: Oid) -> Option<u32> {
        self.iter().find(|(mapped, _)| *mapped == oid).map(|(_, filenode)| filenode)
    }

    /// The relation whose file number is `filenode`.
    pub fn oid(&self, filenode: u32) -> Option<Oid> {
        self.iter().find(|(_, mapped)| *mapped == filenode).map(|(oid, _)| oid)
    }

    /// Every mapping, in the file's order.
    pub fn iter(&self) -> impl Iterator<Item = (Oid, u32)> + '_ {
        self.entries.iter().copied()
    }

    /// How many relations are mapped.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True for a map of nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn slots(file_bytes: usize) -> Result<usize> {
    match file_bytes {
        BYTES_TO_15 => Ok(SLOTS_TO_15),
        BYTES_FROM_16 => Ok(SLOTS_FROM_16),
        other => {
            let what = format!(
                "{other} bytes, where {BYTES_TO_15} (to PostgreSQL 15) or {BYTES_FROM_16} (from 16) belong"
            );
            Err(Error::corrupt(STRUCTURE, other, what))
        }
    }
}

fn check_crc(bytes: &[u8], crc_offset: usize) -> Result<()> {
    let mut r = Reader::new(STRUCTURE, bytes);
    let computed = crc32c::crc32c(r.bytes(crc_offset)?);
    let stored = r.u32()?;
    if stored == computed {
        return Ok(());
    }
    let what = format!("CRC-32C is {computed:08X}, the file says {stored:08X}");
    Err(Error::corrupt(STRUCTURE, crc_offset, what))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `base/13695/pg_filenode.map` of a PostgreSQL 14 cluster.
    const LOCAL_14: &[u8] = include_bytes!("../fixtures/pg_filenode.map/local-14.bin");
    /// `global/pg_filenode.map` of a PostgreSQL 18 cluster.
    const SHARED_18: &[u8] = include_bytes!("../fixtures/pg_filenode.map/shared-18.bin");

    /// A file of `slots` slots with these mappings and a right CRC.
    fn built(slots: usize, entries: &[(u32, u32)]) -> Vec<u8> {
        let mut file = [MAGIC, entries.len() as u32].map(u32::to_le_bytes).concat();
        for slot in 0..slots {
            let (oid, filenode) = entries.get(slot).copied().unwrap_or_default();
            file.extend([oid, filenode].map(u32::to_le_bytes).concat());
        }
        file.extend(crc32c::crc32c(&file).to_le_bytes());
        file.resize(if slots == SLOTS_TO_15 { BYTES_TO_15 } else { BYTES_FROM_16 }, 0);
        file
    }

    #[test]
    fn pg_class_is_found_in_its_databases_map() {
        let map = RelationMap::parse(LOCAL_14).unwrap();
        assert_eq!(map.filenode(Oid(1259)), Some(16406));
        assert_eq!(map.oid(16406), Some(Oid(1259)));
        assert_eq!(map.filenode(Oid(1262)), None);
        assert_eq!(map.len(), 17);
    }

    #[test]
    fn pg_database_is_found_in_the_shared_map_of_the_larger_size() {
        let map = RelationMap::parse(SHARED_18).unwrap();
        assert_eq!(map.filenode(Oid(1262)), Some(1262));
        assert!(!map.is_empty());
    }

    #[test]
    fn a_full_map_is_read_to_its_last_slot() {
        let entries: Vec<_> = (1..=64).map(|n| (n, 1000 + n)).collect();
        let map = RelationMap::parse(&built(SLOTS_FROM_16, &entries)).unwrap();
        assert_eq!(map.filenode(Oid(64)), Some(1064));
        let map = RelationMap::parse(&built(SLOTS_TO_15, &entries[..62])).unwrap();
        assert_eq!(map.filenode(Oid(62)), Some(1062));
    }

    #[test]
    fn damage_is_named() {
        let refusal = |file: &[u8]| RelationMap::parse(file).unwrap_err().to_string();
        assert!(refusal(&SHARED_18[..523]).contains("523 bytes, where 512"));
        let mut file = SHARED_18.to_vec();
        file[8] ^= 1;
        assert!(refusal(&file).contains("CRC-32C is"));
        file[0] = 0;
        assert!(refusal(&file).contains("magic number 00592700"));
        let mut file = SHARED_18.to_vec();
        file[4] = 65;
        let crc = crc32c::crc32c(&file[..520]);
        file[520..].copy_from_slice(&crc.to_le_bytes());
        assert!(refusal(&file).contains("65 mappings in 64 slots"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..530)) {
            let _ = RelationMap::parse(&bytes);
        }

        #[test]
        fn what_is_written_is_read(entries in prop::collection::vec(any::<(u32, u32)>(), 0..=62)) {
            for slots in [SLOTS_TO_15, SLOTS_FROM_16] {
                let map = RelationMap::parse(&built(slots, &entries)).unwrap();
                let read: Vec<_> = map.iter().map(|(oid, filenode)| (oid.0, filenode)).collect();
                prop_assert_eq!(&read, &entries);
            }
        }
    }
}
