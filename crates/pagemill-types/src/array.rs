//! Arrays: `{…}`, with bounds in front where they do not start at 1.
//!
//! ```text
//! payload: ndim | dataoffset (0: no nulls) | element type | dims… | lower bounds… | nulls | values
//! ```
//!
//! Offsets and alignment count from the length word that precedes the payload, 4 bytes earlier.
//! Source: `src/include/utils/array.h`, `array_out` in `src/backend/utils/adt/arrayfuncs.c`,
//! PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_format::error::{Error, Result};
use pagemill_format::ids::Oid;
use pagemill_format::reader::Reader;
use pagemill_format::tuple::AttributeLayout;
use pagemill_format::varlena::{VARLENA_HEADER_BYTES, Varlena};

use super::json::JsonForm;
use super::order::stored_payload;
use super::output::{ValueType, ValueWriter, is_space, quote_tail};

const ARRAY: &str = "array";
const MAX_DIMENSIONS: usize = 6;
const FIXED_HEADER_BYTES: usize = 16;

/// One dimension of an array.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dimension {
    /// How many elements, or arrays of one dimension less.
    pub len: usize,
    /// The subscript of the first.
    pub lower: i32,
}

/// An array as it lies in its payload.
#[derive(Debug, Clone)]
pub struct ArrayValue<'v> {
    header: Header<'v>,
    element: Option<&'v Arc<ValueType>>,
}

impl<'v> ArrayValue<'v> {
    /// `element` is `None` where the array itself names its element type.
    pub(super) fn parse(payload: &'v [u8], element: Option<&'v Arc<ValueType>>) -> Result<Self> {
        Ok(Self { header: Header::parse(payload)?, element })
    }

    /// Its dimensions, none for an empty array.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.header.dimensions[..self.header.ndim]
    }

    /// How many elements it has in all.
    pub fn len(&self) -> usize {
        self.header.items
    }

    /// True when it has none.
    pub fn is_empty(&self) -> bool {
        self.header.items == 0
    }

    /// The OID of the element type, as the array names it.
    pub fn element_oid(&self) -> Oid {
        self.header.element
    }

    /// The element type, where the array's own type tells it.
    pub fn element_type(&self) -> Option<&'v Arc<ValueType>> {
        self.element.filter(|element| element.oid == self.header.element)
    }

    /// Its elements in row-major order: NULL, or bytes as they lie there, found by the layout of the element type.
    /// An error ends them.
    pub fn elements(
        &self,
        layout: AttributeLayout,
    ) -> impl Iterator<Item = Result<Option<&'v [u8]>>> + use<'v> {
        let Header { data, .. } = self.header;
        let header = self.header.clone();
        let mut at = Some(0);
        (0..header.items).map_while(move |item| {
            let start = at?;
            if header.is_null(item) {
                return Some(Ok(None));
            }
            let located = layout.locate_at(data, layout.align_up(start));
            at = located.as_ref().ok().map(|(_, end)| *end);
            Some(located.map(|(start, end)| Some(&data[start..end])))
        })
    }
}

#[derive(Debug, Clone)]
struct Header<'a> {
    element: Oid,
    dimensions: [Dimension; MAX_DIMENSIONS],
    ndim: usize,
    items: usize,
    nulls: Option<&'a [u8]>,
    data: &'a [u8],
}

impl<'a> Header<'a> {
    fn parse(payload: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(ARRAY, payload);
        let ndim = r.u32()? as usize;
        if ndim > MAX_DIMENSIONS {
            return Err(Error::corrupt(ARRAY, 0, format!("{ndim} dimensions, 6 is the most")));
        }
        let data_offset = r.u32()? as usize;
        let element = Oid(r.u32()?);
        let mut dimensions = [Dimension::default(); MAX_DIMENSIONS];
        for d in &mut dimensions[..ndim] {
            d.len = r.u32()? as usize;
        }
        for d in &mut dimensions[..ndim] {
            d.lower = r.i32()?;
        }
        let items = count_items(&dimensions[..ndim], payload.len())?;
        let start = if data_offset == 0 {
            (FIXED_HEADER_BYTES + 8 * ndim).next_multiple_of(8)
        } else {
            data_offset
        };
        let nulls = (data_offset != 0).then(|| r.bytes(items.div_ceil(8))).transpose()?;
        let start = start.checked_sub(VARLENA_HEADER_BYTES).filter(|&at| at >= r.pos());
        // An empty array may end before the alignment of data it does not have.
        let data = match start.and_then(|at| payload.get(at..)) {
            Some(data) => data,
            None if items == 0 => &[],
            None => return Err(r.corrupt(format!("data offset {data_offset} is out of bounds"))),
        };
        Ok(Self { element, dimensions, ndim, items, nulls, data })
    }

    fn is_null(&self, item: usize) -> bool {
        self.nulls.is_some_and(|bits| bits[item / 8] & (1 << (item % 8)) == 0)
    }
}

/// The elements of an array one by one, null or as they are stored. A damaged one ends them.
pub(super) struct Elements<'a> {
    header: Header<'a>,
    layout: AttributeLayout,
    item: usize,
    at: usize,
}

impl<'a> Elements<'a> {
    /// The elements of this array, whose type is laid out so.
    ///
    /// # Errors
    /// When the array's header is damaged.
    pub(super) fn open(payload: &'a [u8], layout: AttributeLayout) -> Result<Self> {
        Ok(Self { header: Header::parse(payload)?, layout, item: 0, at: 0 })
    }

    /// The length and the lower bound of each dimension.
    pub(super) fn dimensions(&self) -> impl Iterator<Item = (usize, i32)> + '_ {
        self.header.dimensions.iter().take(self.header.ndim).map(|d| (d.len, d.lower))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.item >= self.header.items {
            return None;
        }
        let item = self.item;
        self.item += 1;
        if self.header.is_null(item) {
            return Some(None);
        }
        let located =
            self.layout.locate_at(self.header.data, self.layout.align_up(self.at)).ok()?;
        self.at = located.1;
        self.header.data.get(located.0..located.1).map(Some)
    }
}

/// The payloads of all elements of an array whose elements are laid out so.
///
/// # Errors
/// When the array is damaged.
pub fn element_payloads(payload: &[u8], layout: AttributeLayout) -> Result<Vec<Option<Vec<u8>>>> {
    let elements = Elements::open(payload, layout)?;
    let count = elements.header.items;
    let plain = |stored: &[u8]| stored_payload(layout.len, stored).into_owned();
    let found: Vec<_> = elements.map(|element| element.map(plain)).collect();
    match found.len() == count {
        true => Ok(found),
        false => Err(Error::corrupt(ARRAY, 12, "an element outside of the array")),
    }
}

/// The product of the dimensions. Values take at least a byte each unless null, and nulls a bit,
/// so a count that no payload of this size can hold is damage.
fn count_items(dimensions: &[Dimension], payload_bytes: usize) -> Result<usize> {
    if dimensions.is_empty() {
        return Ok(0);
    }
    let items = dimensions.iter().try_fold(1usize, |n, d| n.checked_mul(d.len));
    match items {
        Some(n) if n / 8 <= payload_bytes => Ok(n),
        _ => Err(Error::corrupt(ARRAY, 12, "more elements than the value has room for")),
    }
}

/// Appends an array; `element` is `None` where the array itself names its element type.
pub(super) fn write_array(
    writer: &mut ValueWriter<'_>,
    element: Option<&ValueType>,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let header = Header::parse(payload)?;
    if header.items == 0 {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    write_bounds(&header, out)?;
    match element {
        Some(element) if element.oid == header.element => {
            write_items(writer, element, &header, out)
        }
        // A column's declared element and the stored one may differ only in an array over a
        // domain or of a changed type; the bytes follow what they were written as.
        _ => writer.with_chosen_type(header.element, |writer, element| {
            write_items(writer, element, &header, out)
        }),
    }
}

fn write_bounds(header: &Header<'_>, out: &mut Vec<u8>) -> Result<()> {
    let dimensions = &header.dimensions[..header.ndim];
    if dimensions.iter().all(|d| d.lower == 1) {
        return Ok(());
    }
    let mut number = itoa::Buffer::new();
    for d in dimensions {
        let upper = i64::from(d.lower) + d.len as i64 - 1;
        if upper > i64::from(i32::MAX) {
            return Err(Error::corrupt(ARRAY, 12, "upper bound past 2147483647"));
        }
        out.push(b'[');
        out.extend_from_slice(number.format(d.lower).as_bytes());
        out.push(b':');
        out.extend_from_slice(number.format(upper).as_bytes());
        out.push(b']');
    }
    out.push(b'=');
    Ok(())
}

fn write_items(
    writer: &mut ValueWriter<'_>,
    element: &ValueType,
    header: &Header<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let dimensions = &header.dimensions[..header.ndim];
    let mut at = 0;
    for item in 0..header.items {
        separate(item, element.delimiter, out);
        open(dimensions, item, b'{', out);
        if header.is_null(item) {
            out.extend_from_slice(b"NULL");
        } else {
            let (start, end) =
                element.layout.locate_at(header.data, element.layout.align_up(at))?;
            at = end;
            let text = out.len();
            let raw = &header.data[start..end];
            writer.write(&element.output, element.layout.len, raw, out)?;
            quote(out, text, element);
        }
        close(dimensions, item, b'}', out);
    }
    Ok(())
}

/// Before an item: a delimiter if it is not the first.
fn separate(item: usize, delimiter: u8, out: &mut Vec<u8>) {
    if item > 0 {
        out.push(delimiter);
    }
}

/// Before an item, behind the delimiter: a bracket for every dimension that begins with it.
fn open(dimensions: &[Dimension], item: usize, bracket: u8, out: &mut Vec<u8>) {
    for depth in 0..dimensions.len() {
        let below: usize = dimensions[depth..].iter().map(|d| d.len).product();
        if item.is_multiple_of(below) {
            out.push(bracket);
        }
    }
}

fn close(dimensions: &[Dimension], item: usize, bracket: u8, out: &mut Vec<u8>) {
    for depth in 0..dimensions.len() {
        let below: usize = dimensions[depth..].iter().map(|d| d.len).product();
        if (item + 1).is_multiple_of(below) {
            out.push(bracket);
        }
    }
}

/// Appends an array as JSON: an array of arrays for each dimension but the last; bounds are lost. `element` is `None` where
/// the array itself names its element type.
///
/// Source: `array_to_json_internal` in `src/backend/utils/adt/json.c`, PostgreSQL 14 to 18.
pub(super) fn write_json_array(
    writer: &mut ValueWriter<'_>,
    element: Option<&ValueType>,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let header = Header::parse(payload)?;
    if header.items == 0 {
        out.extend_from_slice(b"[]");
        return Ok(());
    }
    match element {
        Some(element) if element.oid == header.element => {
            write_json_items(writer, element, &header, out)
        }
        _ => writer.with_chosen_type(header.element, |writer, element| {
            write_json_items(writer, element, &header, out)
        }),
    }
}

fn write_json_items(
    writer: &mut ValueWriter<'_>,
    element: &ValueType,
    header: &Header<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let dimensions = &header.dimensions[..header.ndim];
    let (form, mut at) = (JsonForm::of(element), 0);
    for item in 0..header.items {
        separate(item, b',', out);
        open(dimensions, item, b'[', out);
        if header.is_null(item) {
            out.extend_from_slice(b"null");
        } else {
            let (start, end) =
                element.layout.locate_at(header.data, element.layout.align_up(at))?;
            at = end;
            writer.write_json(element, form, &header.data[start..end], out)?;
        }
        close(dimensions, item, b']', out);
    }
    Ok(())
}

fn quote(out: &mut Vec<u8>, start: usize, element: &ValueType) {
    let text = &out[start..];
    let special =
        |b: &u8| matches!(b, b'"' | b'\\' | b'{' | b'}') || *b == element.delimiter || is_space(*b);
    if text.is_empty() || text.eq_ignore_ascii_case(b"null") || text.iter().any(special) {
        quote_tail(out, start, |b| matches!(b, b'"' | b'\\').then_some(b'\\'));
    }
}

/// The bytes of the one element of an array (as `attmissingval` is), as they would lie in a tuple.
///
/// # Errors
/// When the array is damaged or does not have just one element that is not null.
pub fn single_element(payload: &[u8], layout: AttributeLayout) -> Result<&[u8]> {
    let header = Header::parse(payload)?;
    if header.items != 1 || header.is_null(0) {
        let what = format!("{} elements, expected one that is not null", header.items);
        return Err(Error::corrupt(ARRAY, 12, what));
    }
    let (start, end) = layout.locate_at(header.data, 0)?;
    Ok(&header.data[start..end])
}

/// The payloads of the elements of a one-dimensional array of text kept in line, nulls left out.
///
/// # Errors
/// When the array or one of its elements is damaged.
pub fn text_elements(payload: &[u8]) -> Result<Vec<Vec<u8>>> {
    let layout = AttributeLayout { len: -1, align: 4 };
    let header = Header::parse(payload)?;
    let mut found = Vec::new();
    let mut at = 0;
    let present = (0..header.items).filter(|&item| !header.is_null(item)).count();
    for _ in 0..present {
        let (start, end) = layout.locate_at(header.data, layout.align_up(at))?;
        at = end;
        match Varlena::parse(&header.data[start..end])? {
            Varlena::Plain(bytes) => found.push(bytes.to_vec()),
            _ => return Err(Error::corrupt(ARRAY, start, "a compressed element")),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::known_value_tests::{mutation, mutations, payload};
    use super::super::output::samples::{array_of_one, text};
    use super::*;

    const ANY_ARRAY: u32 = 2277;

    /// Payloads and texts of a PostgreSQL 15 server, each array naming its element type.
    const KNOWN: &[(&str, &str)] = &[
        ("000000000000000019000000", "{}"),
        ("0100000020000000170000000300000001000000050000000000000001000000fdffffff", "{1,NULL,-3}"),
        (
            "\
             010000000000000019000000070000000100000010000000200000006e756c6c1c000000612c6200\
             280000007122756f74650000380000006261636b5c736c617368000024000000706c61696e000000\
             1400000020000000",
            r#"{"","null","a,b","q\"uote","back\\slash",plain," "}"#,
        ),
        (
            "\
             020000000000000017000000020000000300000000000000feffffff010000000200000003000000\
             040000000500000006000000",
            "[0:1][-2:0]={{1,2,3},{4,5,6}}",
        ),
        (
            "\
             0100000000000000420f0000030000000100000054000000420f00000f8080010088130b00800200\
             0200000024000000420f00000100000024000000420f000018000000",
            r#"{"[1.5,2)",empty,"(,)"}"#,
        ),
        ("0100000000000000420f0000010000000100000038000000420f00000b008007000c0000", r#"{"(,7]"}"#),
    ];

    /// The payload of an array of integers of one dimension.
    fn integers(lower: i32, items: &[Option<i32>]) -> Vec<u8> {
        let bitmap_bytes = if items.contains(&None) { items.len().div_ceil(8) } else { 0 };
        let data_offset = (24 + bitmap_bytes).next_multiple_of(8);
        let offset_field = if bitmap_bytes > 0 { data_offset as u32 } else { 0 };
        let words = [1, offset_field, 23, items.len() as u32, lower as u32];
        let mut made = words.map(u32::to_le_bytes).concat();
        let mut bitmap = vec![0; bitmap_bytes];
        for (item, _) in items.iter().enumerate().filter(|(_, value)| value.is_some()) {
            if let Some(byte) = bitmap.get_mut(item / 8) {
                *byte |= 1 << (item % 8);
            }
        }
        made.extend(bitmap);
        made.resize(data_offset - 4, 0);
        made.extend(items.iter().flatten().flat_map(|item| item.to_le_bytes()));
        made
    }

    #[test]
    fn arrays_of_a_real_server_print_as_it_prints_them() {
        for (value, expected) in KNOWN {
            assert_eq!(text(ANY_ARRAY, &payload(value)).unwrap(), *expected);
        }
        assert_eq!(text(1007, &payload(KNOWN[1].0)).unwrap(), KNOWN[1].1);
        assert_eq!(text(1009, &payload(KNOWN[2].0)).unwrap(), KNOWN[2].1);
        assert_eq!(text(3907, &payload(KNOWN[4].0)).unwrap(), KNOWN[4].1);
    }

    #[test]
    fn more_elements_than_bytes_are_damage() {
        let huge = [6, 0, 23, 1 << 31, 1 << 31, 1 << 31, 2, 2, 2, 1, 1, 1, 1, 1, 1];
        for words in [&huge[..], &[1, 0, 23, 1 << 20, 1], &[7, 0, 23], &[1, 0, 23, 2, 1, 5]] {
            let value: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
            assert!(text(ANY_ARRAY, &value).is_err(), "{words:?}");
        }
    }

    #[test]
    fn bounds_at_the_edge_of_an_integer_print_and_beyond_it_are_damage() {
        let edge = integers(i32::MAX - 1, &[Some(1), Some(2)]);
        assert_eq!(text(1007, &edge).unwrap(), "[2147483646:2147483647]={1,2}");
        assert!(text(1007, &integers(i32::MAX, &[Some(1), Some(2)])).is_err());
        assert_eq!(
            text(1007, &integers(i32::MIN, &[Some(1)])).unwrap(),
            "[-2147483648:-2147483648]={1}"
        );
    }

    #[test]
    fn a_data_offset_into_the_header_or_past_the_end_is_damage() {
        for offset in [1, 20, 23, 60, u32::MAX] {
            let mut value = integers(1, &[Some(1), None]);
            value[4..8].copy_from_slice(&offset.to_le_bytes());
            assert!(text(1007, &value).is_err(), "{offset}");
        }
    }

    #[test]
    fn the_one_element_of_a_missing_value_is_found() {
        let layout = AttributeLayout { len: 4, align: 4 };
        assert_eq!(single_element(&integers(1, &[Some(7)]), layout).unwrap(), [7, 0, 0, 0]);
        assert!(single_element(&integers(1, &[Some(7), Some(8)]), layout).is_err());
        assert!(single_element(&integers(1, &[None]), layout).is_err());
    }

    #[test]
    fn the_texts_of_settings_are_found_and_nulls_left_out() {
        let value = payload(KNOWN[2].0);
        let found = text_elements(&value).unwrap();
        assert_eq!(found[..3], [b"".to_vec(), b"null".to_vec(), b"a,b".to_vec()]);
        assert_eq!(text_elements(&array_of_one(25, b"x")).unwrap(), [b"x"]);
    }

    proptest! {
        #[test]
        fn integers_and_nulls_print_in_order(
            items in prop::collection::vec(any::<Option<i32>>(), 1..40), lower in -5..5,
        ) {
            let value = text(1007, &integers(lower, &items)).unwrap();
            let item = |item: &Option<i32>| item.map_or("NULL".into(), |item| item.to_string());
            let list = items.iter().map(item).collect::<Vec<_>>().join(",");
            let bounds = match lower {
                1 => String::new(),
                _ => format!("[{lower}:{}]=", lower + items.len() as i32 - 1),
            };
            prop_assert_eq!(value, format!("{bounds}{{{list}}}"));
        }

        #[test]
        fn damaged_arrays_never_panic(change in mutation(KNOWN.len())) {
            for value in mutations(KNOWN, &change) {
                for oid in [ANY_ARRAY, 1007, 1009, 3907] {
                    let _ = text(oid, &value);
                }
                let _ = (text_elements(&value), single_element(&value, AttributeLayout { len: -1, align: 4 }));
            }
        }
    }
}
