//! Builders that are cut back, and texts that are not UTF-8, by chance.
//! What was cut off leaves nothing behind, and a bad text is found where it is.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn pieces_that_are_cut_back_are_as_if_the_rest_had_not_been(
        texts in prop::collection::vec("[a-zß]{0,9}", 0..20), kept in 0usize..20,
    ) {
        let (mut cut, mut short) = (Pieces::default(), Pieces::default());
        for (at, text) in texts.iter().enumerate() {
            cut.data.extend_from_slice(text.as_bytes());
            prop_assert!(cut.end_value().is_ok());
            if at < kept {
                short.data.extend_from_slice(text.as_bytes());
                prop_assert!(short.end_value().is_ok());
            }
        }
        cut.truncate(kept);
        prop_assert_eq!(cut.ends, short.ends);
        prop_assert_eq!(cut.data, short.data);
    }

    #[test]
    fn a_text_that_is_not_utf8_is_found_where_it_is(
        texts in prop::collection::vec("[a-zß]{0,9}", 1..20), at in 0usize..20,
    ) {
        let at = at % texts.len();
        let mut pieces = Pieces::default();
        for (number, text) in texts.iter().enumerate() {
            pieces.data.extend_from_slice(text.as_bytes());
            if number == at {
                // The first byte of two: followed by the other, of the next text, it would be a character.
                pieces.data.push(0xC3);
            }
            prop_assert!(pieces.end_value().is_ok());
        }
        prop_assert_eq!(text_array(&mut pieces, None).err().map(|fault| fault.at), Some(at));
    }
}
