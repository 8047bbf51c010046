//! Lists of grants, and whether they give a role a right.
//!
//! ```text
//!   NULL in the catalog ──► what everybody and the owner have by default ─┐
//!   items of an array   ──────────────────────────────────────────────────┴─► of everybody, of the role, of those whose rights it has
//! ```
//!
//! Invariant: what is cut off grants nothing. The owner can grant on whatever there is, whether the list says it or not.
//!
//! Source: `struct AclItem` in `src/include/utils/acl.h`, whose rights are a word of 32 bits up to 15 and of 64 from 16 on, those to grant
//! on in its upper half; `aclmask` and `acldefault` in `src/backend/utils/adt/acl.c`, `ACL_…` in `src/include/nodes/parsenodes.h`,
//! PostgreSQL 14 to 18.

use pagemill_format::Oid;

use super::members::Members;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::SystemRow;

/// Bytes of an array's header in front of its elements: three words, and two for its one dimension.
const HEADER: usize = 20;
/// The letters that rights are printed with; the place of each is its bit.
const LETTERS: &str = "arwdDxtXUCTcsAm";
/// In a list, everybody; in a call, `public`.
pub(crate) const EVERYBODY: Oid = Oid(0);

/// The bits of rights, by their letters.
pub(crate) fn bits(letters: &str) -> u32 {
    let bit = |letter| LETTERS.find(letter).map_or(0, |place| 1 << place);
    letters.chars().map(bit).sum()
}

/// What everybody may do with a kind of object as long as nothing was granted, and what its owner may; `None` for a letter of no kind.
pub(crate) fn default_rights(kind: u8, major: u32) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        b'c' => ("", ""),
        b'r' if major >= 17 => ("", "arwdDxtm"),
        b'r' => ("", "arwdDxt"),
        b's' => ("", "rwU"),
        b'd' => ("Tc", "CTc"),
        b'f' => ("X", "X"),
        b'l' | b'T' => ("U", "U"),
        b'L' => ("", "rw"),
        b'n' => ("", "UC"),
        b't' => ("", "C"),
        b'F' | b'S' => ("", "U"),
        b'p' if major >= 15 => ("", "sA"),
        _ => return None,
    })
}

/// Rights of which one is asked for: to do something, and to grant it on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) rights: u32,
    pub(crate) grantable: u32,
}

impl Wanted {
    /// To do something.
    pub(crate) fn to(rights: u32) -> Self {
        Self { rights, grantable: 0 }
    }

    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// A grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AclItem {
    /// To whom; 0 for everybody.
    pub(super) grantee: Oid,
    /// What.
    pub(super) rights: u32,
    /// What of it can be granted on.
    pub(super) grantable: u32,
}

/// An object's owner and its grants; `None` where nothing was ever granted.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    pub(super) owner: Oid,
    pub(super) acl: Option<Vec<AclItem>>,
    /// The letter of its kind.
    pub(super) kind: u8,
}

impl Owned {
    /// Whether a role has one of the rights. That superusers have all is not looked at here.
    pub(super) fn gives(&self, members: &Members, role: Oid, wanted: Wanted) -> bool {
        /// Rights that a version does not have are not asked for there.
        const NEWEST: u32 = 18;
        let is_owner = || members.has_rights_of(role, self.owner);
        if wanted.grantable != 0 && is_owner() {
            return true;
        }
        match &self.acl {
            Some(items) => gives(items, members, role, wanted),
            None => {
                let (all, own) = default_rights(self.kind, NEWEST).unwrap_or_default();
                bits(all) & wanted.rights != 0 || bits(own) & wanted.rights != 0 && is_owner()
            }
        }
    }
}

/// Whether a list gives a role one of the rights.
pub(super) fn gives(items: &[AclItem], members: &Members, role: Oid, wanted: Wanted) -> bool {
    items.iter().any(|item| {
        let is_wanted = item.rights & wanted.rights | item.grantable & wanted.grantable != 0;
        is_wanted && (item.grantee == EVERYBODY || members.has_rights_of(role, item.grantee))
    })
}

/// How wide an item is.
pub(super) fn item_bytes(catalog: &Catalog) -> usize {
    if catalog.database().cluster().version().major() >= 16 { 16 } else { 12 }
}

/// The list in a column.
pub(super) fn acl(
    row: &mut SystemRow<'_>,
    column: usize,
    item_bytes: usize,
) -> Result<Option<Vec<AclItem>>> {
    Ok(row.payload(column)?.map(|payload| items(payload, item_bytes)))
}

/// The items of an array.
fn items(payload: &[u8], item_bytes: usize) -> Vec<AclItem> {
    let items = payload.get(HEADER..).unwrap_or_default().chunks_exact(item_bytes);
    let word = |item: &[u8], at: usize| {
        let bytes = item.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    // Behind the grantee is who granted it.
    let item = |item: &[u8]| {
        let (grantee, low) = (Oid(word(item, 0)), word(item, 8));
        let (rights, grantable) = match item_bytes {
            12 => (low & 0xFFFF, low >> 16),
            _ => (low, word(item, 12)),
        };
        AclItem { grantee, rights, grantable }
    };
    items.map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(items: &[&[u32]]) -> Vec<u8> {
        let header = [1, 0, 1033, items.len() as u32, 1];
        header
            .iter()
            .chain(items.iter().copied().flatten())
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    #[test]
    fn items_of_both_widths_are_read() {
        let item =
            |grantee, rights, grantable| AclItem { grantee: Oid(grantee), rights, grantable };
        let wanted = [item(0, 2, 0), item(9, 0x102, 2)];
        assert_eq!(items(&array(&[&[0, 10, 2], &[9, 10, 0x2_0102]]), 12), wanted);
        assert_eq!(items(&array(&[&[0, 10, 2, 0], &[9, 10, 0x102, 2]]), 16), wanted);
        // Nothing is granted: an array without dimensions. One that is cut grants no more than what is there.
        assert_eq!(items(&[0; 12], 12), []);
        assert_eq!(items(&array(&[&[0, 10, 2], &[9, 10]]), 12), wanted[..1]);
    }

    #[test]
    fn letters_are_bits() {
        assert_eq!(
            (bits("r"), bits("U"), bits("c"), bits("m")),
            (1 << 1, 1 << 8, 1 << 11, 1 << 14)
        );
        assert_eq!(bits(""), 0);
    }
}
