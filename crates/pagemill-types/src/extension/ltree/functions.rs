//! The extension's functions by their symbols.
//!
//! All are strict. `hash_ltree` and `hash_ltree_extended` are of version 1.3 of the extension, which came with PostgreSQL 17; all others
//! are of every version. Left out are those of types' input and output, of GiST, and `ltreeparentsel`.
//!
//! Invariant: a function takes as many arguments as its declarations have; those of several declarations tell them by that number.
//!
//! Sources: `contrib/ltree/ltree--1.1.sql`, `ltree--1.1--1.2.sql`, `ltree--1.2--1.3.sql`, PostgreSQL 14 to 18.

use crate::extension::call::{ExtensionFunction, strict};

use super::array_functions as arrays;
use super::path_functions as paths;

/// The functions of the library `ltree`.
pub const FUNCTIONS: &[ExtensionFunction] = &[
    strict("ltree_cmp", paths::LTREE_CMP),
    strict("ltree_lt", paths::LTREE_LT),
    strict("ltree_le", paths::LTREE_LE),
    strict("ltree_eq", paths::LTREE_EQ),
    strict("ltree_ne", paths::LTREE_NE),
    strict("ltree_ge", paths::LTREE_GE),
    strict("ltree_gt", paths::LTREE_GT),
    strict("ltree_isparent", paths::LTREE_ISPARENT),
    strict("ltree_risparent", paths::LTREE_RISPARENT),
    strict("nlevel", paths::NLEVEL),
    strict("subltree", paths::SUBLTREE),
    strict("subpath", paths::SUBPATH),
    strict("ltree_index", paths::LTREE_INDEX),
    strict("ltree_addltree", paths::LTREE_ADDLTREE),
    strict("ltree_addtext", paths::LTREE_ADDTEXT),
    strict("ltree_textadd", paths::LTREE_TEXTADD),
    strict("text2ltree", paths::TEXT2LTREE),
    strict("ltree2text", paths::LTREE2TEXT),
    strict("lca", paths::LCA),
    strict("_lca", paths::ARRAY_LCA),
    strict("hash_ltree", paths::HASH_LTREE),
    strict("hash_ltree_extended", paths::HASH_LTREE_EXTENDED),
    strict("ltq_regex", arrays::LTQ_REGEX),
    strict("ltq_rregex", arrays::LTQ_RREGEX),
    strict("lt_q_regex", arrays::LT_Q_REGEX),
    strict("lt_q_rregex", arrays::LT_Q_RREGEX),
    strict("ltxtq_exec", arrays::LTXTQ_EXEC),
    strict("ltxtq_rexec", arrays::LTXTQ_REXEC),
    strict("_ltree_isparent", arrays::ARRAY_ISPARENT),
    strict("_ltree_r_isparent", arrays::ARRAY_R_ISPARENT),
    strict("_ltree_risparent", arrays::ARRAY_RISPARENT),
    strict("_ltree_r_risparent", arrays::ARRAY_R_RISPARENT),
    strict("_ltq_regex", arrays::ARRAY_LTQ_REGEX),
    strict("_ltq_rregex", arrays::ARRAY_LTQ_RREGEX),
    strict("_lt_q_regex", arrays::ARRAY_LT_Q_REGEX),
    strict("_lt_q_rregex", arrays::ARRAY_LT_Q_RREGEX),
    strict("_ltxtq_exec", arrays::ARRAY_LTXTQ_EXEC),
    strict("_ltxtq_rexec", arrays::ARRAY_LTXTQ_REXEC),
    strict("_ltree_extract_isparent", arrays::EXTRACT_ISPARENT),
    strict("_ltree_extract_risparent", arrays::EXTRACT_RISPARENT),
    strict("_ltq_extract_regex", arrays::EXTRACT_REGEX),
    strict("_ltxtq_extract_exec", arrays::EXTRACT_EXEC),
];
