//! PostGIS's `geometry` and `geography`: shapes with coordinates of two to four dimensions.
//!
//! ```text
//! SRID, 3 bytes | flags | [more flags, 8 bytes] | [bounding box, f32 each] | shape
//! shape: type u32 | count u32 | …
//!   points, lines, circular strings, triangles: `count` positions
//!   polygons: counts of `count` rings, u32, to a multiple of 8, then their positions
//!   all others: `count` shapes
//! ```
//!
//! Text is the hexadecimal form of "extended" well-known binary, as the output function has it; files of others want
//! well-known binary as ISO has it, where the dimensions are told by thousands and there is no SRID.
//!
//! Source: `liblwgeom/gserialized1.c`, `gserialized2.c`, `lwout_wkb.c` of PostGIS 3.

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

const GEOMETRY: &str = "geometry";
const HAS_Z: u8 = 0x01;
const HAS_M: u8 = 0x02;
const HAS_BOX: u8 = 0x04;
const IS_GEODETIC: u8 = 0x08;
/// In the second version of the layout.
const IS_EXTENDED: u8 = 0x10;
const IS_SECOND_VERSION: u8 = 0x40;
/// Shapes in shapes; PostGIS itself refuses more.
const MOST_DEPTH: usize = 128;

/// How well-known binary tells dimensions and SRID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WkbForm {
    /// ISO's: thousands in the type, no SRID.
    Iso,
    /// PostGIS's: bits in the type, and the SRID behind it.
    Extended,
}

/// What is known of a geometry before its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    srid: i32,
    has_z: bool,
    has_m: bool,
}

impl Head {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let found = reader.bytes(4)?;
        let flags = found[3];
        // 21 bits with a sign.
        let srid = i32::from_be_bytes([0, found[0], found[1], found[2]]);
        let srid = (srid << 11) >> 11;
        let head = Self { srid, has_z: flags & HAS_Z != 0, has_m: flags & HAS_M != 0 };
        if flags & IS_SECOND_VERSION != 0 && flags & IS_EXTENDED != 0 {
            reader.bytes(8)?;
        }
        if flags & HAS_BOX != 0 {
            let axes = if flags & IS_GEODETIC != 0 { 3 } else { head.dimensions() };
            reader.bytes(axes * 8)?;
        }
        Ok(head)
    }

    fn dimensions(self) -> usize {
        2 + usize::from(self.has_z) + usize::from(self.has_m)
    }

    /// The type as well-known binary has it, with its dimensions.
    fn code(self, wkb_type: u32, form: WkbForm, with_srid: bool) -> u32 {
        let (z, m) = (u32::from(self.has_z), u32::from(self.has_m));
        match form {
            WkbForm::Iso => wkb_type + 1000 * z + 2000 * m,
            WkbForm::Extended => wkb_type | z << 31 | m << 30 | u32::from(with_srid) << 29,
        }
    }
}

/// The SRID of a payload, 0 for none.
///
/// # Errors
/// When the payload is cut off.
pub fn srid(payload: &[u8]) -> Result<i32> {
    Ok(Head::read(&mut Reader::new(GEOMETRY, payload))?.srid)
}

/// Appends a payload as well-known binary, little-endian.
///
/// # Errors
/// When the payload is cut off, or a shape is of no known type.
pub fn write_wkb(payload: &[u8], form: WkbForm, out: &mut Vec<u8>) -> Result<()> {
    let mut reader = Reader::new(GEOMETRY, payload);
    let head = Head::read(&mut reader)?;
    let srid = (form == WkbForm::Extended && head.srid != 0).then_some(head.srid);
    Writer { reader, head, form, out }.shape(srid, 0)
}

/// `geometry`, `geography`: extended well-known binary in hexadecimal digits.
///
/// # Errors
/// As [`write_wkb`].
pub fn write_geometry(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut bytes = Vec::new();
    write_wkb(payload, WkbForm::Extended, &mut bytes)?;
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    Ok(())
}

struct Writer<'a, 'o> {
    reader: Reader<'a>,
    head: Head,
    form: WkbForm,
    out: &'o mut Vec<u8>,
}

impl Writer<'_, '_> {
    fn shape(&mut self, srid: Option<i32>, depth: usize) -> Result<()> {
        if depth > MOST_DEPTH {
            return Err(self.reader.corrupt("shapes are nested too deep"));
        }
        let (own_type, count) = (self.reader.u32()?, self.reader.u32()?);
        // Polyhedral surfaces, triangles and networks of them have other numbers there.
        let wkb_type = match own_type {
            1..=12 => own_type,
            13 => 15,
            14 => 17,
            15 => 16,
            _ => return Err(self.reader.corrupt(format!("a shape of the type {own_type}"))),
        };
        self.out.push(1);
        self.push(self.head.code(wkb_type, self.form, srid.is_some()));
        if let Some(srid) = srid {
            self.out.extend_from_slice(&srid.to_le_bytes());
        }
        match own_type {
            1 => self.point(count),
            2 | 8 => {
                self.push(count);
                self.positions(count)
            }
            3 => self.polygon(count),
            14 => self.triangle(count),
            _ => {
                self.push(count);
                (0..count).try_for_each(|_| self.shape(None, depth + 1))
            }
        }
    }

    fn push(&mut self, number: u32) {
        self.out.extend_from_slice(&number.to_le_bytes());
    }

    fn positions(&mut self, count: u32) -> Result<()> {
        let bytes = (count as usize).saturating_mul(8 * self.head.dimensions());
        let found = self.reader.bytes(bytes)?;
        self.out.extend_from_slice(found);
        Ok(())
    }

    /// A point that is empty has coordinates that are no numbers.
    fn point(&mut self, count: u32) -> Result<()> {
        match count {
            0 => {
                let nothing = f64::NAN.to_le_bytes().repeat(self.head.dimensions());
                self.out.extend_from_slice(&nothing);
                Ok(())
            }
            1 => self.positions(1),
            _ => Err(Error::corrupt(GEOMETRY, 0, format!("a point of {count} positions"))),
        }
    }

    fn polygon(&mut self, rings: u32) -> Result<()> {
        self.push(rings);
        let counts = self.reader.bytes((rings as usize).saturating_mul(4))?;
        if rings % 2 == 1 {
            self.reader.bytes(4)?;
        }
        for count in counts.as_chunks().0 {
            let count = u32::from_le_bytes(*count);
            self.push(count);
            self.positions(count)?;
        }
        Ok(())
    }

    /// A triangle is a polygon of at most one ring.
    fn triangle(&mut self, count: u32) -> Result<()> {
        self.push(u32::from(count > 0));
        if count > 0 {
            self.push(count);
        }
        self.positions(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_value_tests::payload as hex;
    use crate::printed;

    /// A shape's words and positions behind a head without bounding box.
    fn geometry(head: &str, words: &[u32], positions: &[f64]) -> Vec<u8> {
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        let positions = positions.iter().flat_map(|number| number.to_le_bytes());
        hex(head).into_iter().chain(words).chain(positions).collect()
    }

    #[test]
    fn a_point_prints_as_postgis_prints_it() {
        // SRID=4326;POINT(1 2)
        let point = geometry("0010e640", &[1, 1], &[1.0, 2.0]);
        let text = "0101000020E6100000000000000000F03F0000000000000040";
        assert_eq!(printed(write_geometry, &point), text);
        assert_eq!(srid(&point).unwrap(), 4326);
        let mut iso = Vec::new();
        write_wkb(&point, WkbForm::Iso, &mut iso).unwrap();
        assert_eq!(iso, hex("0101000000000000000000f03f0000000000000040"));
    }

    #[test]
    fn dimensions_boxes_and_rings_are_told() {
        // POINT Z (1 2 3), in the first version of the layout
        let point = geometry("00000001", &[1, 1], &[1.0, 2.0, 3.0]);
        let mut iso = Vec::new();
        write_wkb(&point, WkbForm::Iso, &mut iso).unwrap();
        assert_eq!(iso[..5], [1, 0xE9, 3, 0, 0]);
        // POLYGON((0 0,1 0,0 1,0 0)) with its bounding box, and bytes that fill up to a multiple of 8
        let mut polygon = geometry("00000044", &[0, 0, 0, 0, 3, 1, 4, 0], &[0.0; 8]);
        iso.clear();
        write_wkb(&polygon, WkbForm::Iso, &mut iso).unwrap();
        assert_eq!(iso.len(), 1 + 4 + 4 + 4 + 64);
        polygon.truncate(polygon.len() - 1);
        assert!(write_wkb(&polygon, WkbForm::Iso, &mut Vec::new()).is_err());
    }

    #[test]
    fn an_empty_point_has_no_numbers() {
        let mut iso = Vec::new();
        write_wkb(&geometry("00000040", &[1, 0], &[]), WkbForm::Iso, &mut iso).unwrap();
        assert!(f64::from_le_bytes(iso[5..13].try_into().unwrap()).is_nan());
    }
}
