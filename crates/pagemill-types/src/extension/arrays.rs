//! Arrays of texts and of integers, read and made for the functions of extensions.
//!
//! A payload is laid out as [`crate::array`] says; what is made here has the bytes that the server's `construct_md_array` makes, a
//! last element padded to its alignment included.
//!
//! Invariant: payloads that are no arrays are an error, never a panic; an array without elements has no dimensions.
//! Source: `construct_md_array` and `deconstruct_array` in `src/backend/utils/adt/arrayfuncs.c`, `src/include/utils/array.h`,
//! PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::tuple::AttributeLayout;

use crate::array::{ArrayValue, Dimension, element_payloads};
use crate::builtin::oid;

const LENGTH_WORD_BYTES: usize = 4;
const FIXED_HEADER_BYTES: usize = 16;
const MAX_ALIGN: usize = 8;
const TEXT: AttributeLayout = AttributeLayout { len: -1, align: 4 };
const INT4: AttributeLayout = AttributeLayout { len: 4, align: 4 };

/// An array's elements in row-major order, NULL as `None`, and its dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array<T> {
    /// None of an empty array, at most six.
    pub dimensions: Vec<Dimension>,
    /// As many as the product of the dimensions' lengths.
    pub elements: Vec<Option<T>>,
}

impl<T> Array<T> {
    /// An array of one dimension from 1 on.
    pub fn of_one_dimension(elements: Vec<Option<T>>) -> Self {
        Self { dimensions: vec![Dimension { len: elements.len(), lower: 1 }], elements }
    }

    /// True where an element is NULL.
    pub fn has_nulls(&self) -> bool {
        self.elements.iter().any(Option::is_none)
    }

    /// The elements that are not NULL.
    pub fn present(self) -> Vec<T> {
        self.elements.into_iter().flatten().collect()
    }
}

impl<T: AsRef<[u8]>> Array<T> {
    /// The payload of a `text[]`.
    pub fn texts_payload(&self) -> Vec<u8> {
        write(self, oid::TEXT.0, |text, out| {
            let text = text.as_ref();
            // Longer texts than the length word can say do not come out of values.
            let length = text.len().saturating_add(LENGTH_WORD_BYTES) as u32;
            out.extend_from_slice(&(length << 2).to_le_bytes());
            out.extend_from_slice(text);
            align(out, INT4.align.into());
        })
    }
}

impl Array<i32> {
    /// The payload of an `integer[]`.
    pub fn integers_payload(&self) -> Vec<u8> {
        write(self, oid::INT4.0, |number, out| out.extend_from_slice(&number.to_le_bytes()))
    }
}

/// The elements of a `text[]`, or of an array of another type that is kept like text.
///
/// # Errors
/// When the payload is damaged.
pub fn texts(payload: &[u8]) -> Result<Array<Vec<u8>>> {
    let elements = element_payloads(payload, TEXT)?;
    Ok(Array { dimensions: dimensions(payload)?, elements })
}

/// The elements of an `integer[]`.
///
/// # Errors
/// When the payload is damaged.
pub fn integers(payload: &[u8]) -> Result<Array<i32>> {
    let number = |bytes: Option<Vec<u8>>| {
        let Some(bytes) = bytes else { return Ok(None) };
        let bytes = bytes.as_slice().try_into();
        let damage = |_| Error::corrupt("array", FIXED_HEADER_BYTES, "an integer of other size");
        bytes.map(i32::from_le_bytes).map(Some).map_err(damage)
    };
    let elements = element_payloads(payload, INT4)?.into_iter().map(number).collect::<Result<_>>();
    Ok(Array { dimensions: dimensions(payload)?, elements: elements? })
}

fn dimensions(payload: &[u8]) -> Result<Vec<Dimension>> {
    Ok(ArrayValue::parse(payload, None)?.dimensions().to_vec())
}

fn write<T>(array: &Array<T>, element_type: u32, element: impl Fn(&T, &mut Vec<u8>)) -> Vec<u8> {
    if array.elements.is_empty() {
        return [0, 0, element_type].map(u32::to_le_bytes).concat();
    }
    // The length word is cut off at the end, so that alignment is that of the buffer.
    let mut out = vec![0; LENGTH_WORD_BYTES];
    let mut words = vec![array.dimensions.len() as u32, 0, element_type];
    words.extend(array.dimensions.iter().map(|one| one.len as u32));
    words.extend(array.dimensions.iter().map(|one| one.lower as u32));
    out.extend(words.into_iter().flat_map(u32::to_le_bytes));
    if array.has_nulls() {
        write_nulls(&array.elements, &mut out);
    }
    align(&mut out, MAX_ALIGN);
    for present in array.elements.iter().flatten() {
        element(present, &mut out);
    }
    out.split_off(LENGTH_WORD_BYTES)
}

/// Appends a bit for each element, 0 for NULL, and says in the header where the elements begin.
fn write_nulls<T>(elements: &[Option<T>], out: &mut Vec<u8>) {
    for eight in elements.chunks(8) {
        let bits = eight.iter().enumerate().map(|(at, one)| u8::from(one.is_some()) << at);
        out.push(bits.sum());
    }
    let data_offset = (out.len().next_multiple_of(MAX_ALIGN) as u32).to_le_bytes();
    let field = out.iter_mut().skip(LENGTH_WORD_BYTES + 4);
    field.zip(data_offset).for_each(|(to, from)| *to = from);
}

fn align(out: &mut Vec<u8>, to: usize) {
    out.resize(out.len().next_multiple_of(to), 0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::known_value_tests::payload;

    fn texts_of(elements: &[Option<&str>]) -> Array<Vec<u8>> {
        let owned = |one: &Option<&str>| one.map(|text| text.as_bytes().to_vec());
        Array::of_one_dimension(elements.iter().map(owned).collect())
    }

    /// Payloads of a PostgreSQL 15 server.
    #[test]
    fn arrays_are_made_as_the_server_makes_them() {
        let empty = payload("000000000000000019000000");
        assert_eq!(texts_of(&[]).texts_payload(), empty);
        assert_eq!(texts(&empty).unwrap(), Array { dimensions: vec![], elements: vec![] });
        let some = "\
             010000000000000019000000070000000100000010000000200000006e756c6c1c000000612c6200\
             280000007122756f74650000380000006261636b5c736c617368000024000000706c61696e000000\
             1400000020000000";
        let parts = ["", "null", "a,b", "q\"uote", "back\\slash", "plain", " "].map(Some);
        assert_eq!(texts_of(&parts).texts_payload(), payload(some));
        assert_eq!(texts(&payload(some)).unwrap(), texts_of(&parts));
        let nulls = "0100000020000000170000000300000001000000050000000000000001000000fdffffff";
        let numbers = Array::of_one_dimension(vec![Some(1), None, Some(-3)]);
        assert_eq!(numbers.integers_payload(), payload(nulls));
        assert_eq!(integers(&payload(nulls)).unwrap(), numbers);
        assert_eq!(numbers.present(), [1, -3]);
        let matrix = payload(
            "\
             020000000000000017000000020000000300000000000000feffffff010000000200000003000000\
             040000000500000006000000",
        );
        let dimensions = [(2, 0), (3, -2)].map(|(len, lower)| Dimension { len, lower }).to_vec();
        let numbers = Array { dimensions, elements: (1..=6).map(Some).collect() };
        assert_eq!(numbers.integers_payload(), matrix);
        assert_eq!(integers(&matrix).unwrap(), numbers);
    }

    #[test]
    fn a_cut_array_is_an_error() {
        let whole = texts_of(&[Some("a"), None, Some("b")]).texts_payload();
        for len in 0..whole.len() - 3 {
            assert!(texts(whole.get(..len).unwrap_or_default()).is_err(), "{len}");
        }
    }

    proptest! {
        #[test]
        fn texts_come_back(
            elements in prop::collection::vec(prop::option::of("[a-c]{0,9}"), 2..20), lower in any::<i32>(),
        ) {
            let len = elements.len() / 2;
            let elements: Vec<_> = elements.into_iter().take(2 * len).map(|one| one.map(String::into_bytes)).collect();
            let dimensions = vec![Dimension { len, lower }, Dimension { len: 2, lower: 1 }];
            let made = Array { dimensions, elements };
            prop_assert_eq!(texts(&made.texts_payload()).unwrap(), made);
        }

        #[test]
        fn numbers_come_back(elements in prop::collection::vec(any::<Option<i32>>(), 1..40)) {
            let made = Array::of_one_dimension(elements);
            prop_assert_eq!(integers(&made.integers_payload()).unwrap(), made);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..80), small in prop::collection::vec(0u32..9, 0..20),
        ) {
            let small: Vec<u8> = small.into_iter().flat_map(u32::to_le_bytes).collect();
            for payload in [&bytes, &small, &[&small[..], &bytes].concat()] {
                let _ = texts(payload);
                let _ = integers(payload);
            }
        }
    }
}
