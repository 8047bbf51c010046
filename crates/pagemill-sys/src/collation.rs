//! The order of texts in a locale of the C library: what a deterministic collation of the provider
//! libc sorts by; and the classes and cases of its characters.
//!
//! A server asks `strcoll_l(3)` of the same library with the same locale, so an index built with it
//! here is in that server's order, as long as both run with the same version of the library.
//!
//! A C library without locales, as musl, takes any name and orders by bytes. There every locale but `C` and `POSIX`
//! is refused, so that no index is ever built in an order that its server does not have.
//!
//! Invariants: `locale` came from `newlocale` and is freed once, when the value is dropped; the
//! strings handed to the library end with a zero and have none before.
//!
//! Sources: `pg_newlocale_from_collation` in `src/backend/utils/adt/pg_locale.c`, `varstr_cmp` in
//! `src/backend/utils/adt/varlena.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;
use std::ffi::{CStr, CString};
use std::io;

// SAFETY: the declarations are those of POSIX and of glibc's and musl's <string.h> and <wctype.h>.
unsafe extern "C" {
    /// POSIX.1-2008; the `libc` crate does not declare it for Linux.
    fn strcoll_l(
        a: *const libc::c_char,
        b: *const libc::c_char,
        locale: libc::locale_t,
    ) -> libc::c_int;

    /// POSIX.1-2008, likewise: writes at most `size` bytes, and returns how many there are without the zero.
    fn strxfrm_l(
        to: *mut libc::c_char,
        from: *const libc::c_char,
        size: libc::size_t,
        locale: libc::locale_t,
    ) -> libc::size_t;

    /// POSIX.1-2008.
    fn towupper_l(letter: libc::c_uint, locale: libc::locale_t) -> libc::c_uint;

    /// POSIX.1-2008.
    fn towlower_l(letter: libc::c_uint, locale: libc::locale_t) -> libc::c_uint;

    /// POSIX.1-2008.
    fn iswalnum_l(letter: libc::c_uint, locale: libc::locale_t) -> libc::c_int;

    /// POSIX.1-2008.
    fn iswalpha_l(letter: libc::c_uint, locale: libc::locale_t) -> libc::c_int;

    /// POSIX.1-2008.
    fn iswdigit_l(letter: libc::c_uint, locale: libc::locale_t) -> libc::c_int;

    /// POSIX.1-2008.
    fn iswspace_l(letter: libc::c_uint, locale: libc::locale_t) -> libc::c_int;

    /// POSIX.1-2008: zero for a class that the locale does not have. The type is that of glibc's and musl's `wctype_t`.
    fn wctype_l(name: *const libc::c_char, locale: libc::locale_t) -> libc::c_ulong;

    /// POSIX.1-2008.
    fn iswctype_l(
        letter: libc::c_uint,
        class: libc::c_ulong,
        locale: libc::locale_t,
    ) -> libc::c_int;
}

/// Texts up to this length are compared without taking memory.
const SHORT_TEXT: usize = 255;

/// Whether this program's C library knows the order of any locale but `C`: glibc does, musl does not.
const HAS_LOCALES: bool = cfg!(target_env = "gnu");

/// The version of the C library, which is that of its collations: `2.36`; `None` for a library without locales.
pub fn libc_version() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the function takes nothing and returns a string that ends with a zero and lives as long as the program.
        let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        Some(version.to_string_lossy().into_owned())
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Refuses a locale that the C library would take and not follow.
fn check_known(name: &[u8], has_locales: bool) -> io::Result<()> {
    if has_locales || matches!(name, b"C" | b"POSIX") {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "the C library that this program was built with (musl) has no locales",
    ))
}

/// The order of a locale.
#[derive(Debug)]
pub struct LocaleCollation {
    locale: libc::locale_t,
}

// SAFETY: a locale object is never changed after it was made, and POSIX lets any thread use one
// (`strcoll_l` is thread-safe); it is freed by its only owner.
unsafe impl Send for LocaleCollation {}
// SAFETY: as above: shared use only reads the locale object.
unsafe impl Sync for LocaleCollation {}

impl LocaleCollation {
    /// The locale of this name (`datcollate`, `collcollate`): `en_US.UTF-8`.
    ///
    /// # Errors
    /// What the library reports: ENOENT for a locale that is not installed; EINVAL for a name with a
    /// zero in it. [`io::ErrorKind::Unsupported`] for any but `C` and `POSIX` where the library has no locales.
    pub fn new(name: &[u8]) -> io::Result<Self> {
        let name = CString::new(name).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        check_known(name.to_bytes(), HAS_LOCALES)?;
        let mask = libc::LC_COLLATE_MASK | libc::LC_CTYPE_MASK;
        // SAFETY: the name ends with a zero and lives through the call, which copies what it needs; a null
        // base asks for a new locale object.
        let locale = unsafe { libc::newlocale(mask, name.as_ptr(), std::ptr::null_mut()) };
        if locale.is_null() { Err(io::Error::last_os_error()) } else { Ok(Self { locale }) }
    }

    /// The order of two texts in the locale's encoding; of each, what comes before the first zero. Texts
    /// that differ may be equal: it is for the caller then to decide by their bytes.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        with_zero(a, |a| with_zero(b, |b| self.compare_strings(a, b)))
    }

    /// Appends the bytes that `strxfrm_l` makes of a text up to its first zero. They are meant to sort as
    /// [`compare`](Self::compare) has it; glibc's do not in every case.
    pub fn transform(&self, text: &[u8], to: &mut Vec<u8>) {
        with_zero(text, |text| {
            // Most often enough, so that the library is asked once.
            let mut room = text.to_bytes().len() * 8 + 64;
            loop {
                let begin = to.len();
                to.resize(begin + room, 0);
                let place = to[begin..].as_mut_ptr().cast();
                // SAFETY: `place` has room for `room` bytes, which are all that is written; the text ends with a zero,
                // lies elsewhere and lives through the call; the locale lives as long as `self`.
                let length = unsafe { strxfrm_l(place, text.as_ptr(), room, self.locale) };
                let is_whole = length < room;
                to.truncate(begin + if is_whole { length } else { 0 });
                if is_whole {
                    return;
                }
                room = length + 1;
            }
        });
    }

    /// The capital of a letter in the locale's character set, which is to be one of Unicode's; else the letter itself.
    pub fn upper(&self, letter: char) -> char {
        // SAFETY: the function takes any number; the locale lives as long as `self`.
        let made = unsafe { towupper_l(u32::from(letter), self.locale) };
        char::from_u32(made).unwrap_or(letter)
    }

    /// The small one of a letter, likewise.
    pub fn lower(&self, letter: char) -> char {
        // SAFETY: the function takes any number; the locale lives as long as `self`.
        let made = unsafe { towlower_l(u32::from(letter), self.locale) };
        char::from_u32(made).unwrap_or(letter)
    }

    /// True for letters and digits.
    pub fn is_alphanumeric(&self, letter: char) -> bool {
        // SAFETY: the function takes any number; the locale lives as long as `self`.
        unsafe { iswalnum_l(u32::from(letter), self.locale) != 0 }
    }

    /// True for letters.
    pub fn is_letter(&self, letter: char) -> bool {
        // SAFETY: the function takes any number; the locale lives as long as `self`.
        unsafe { iswalpha_l(u32::from(letter), self.locale) != 0 }
    }

    /// True for digits.
    pub fn is_digit(&self, letter: char) -> bool {
        // SAFETY: the function takes any number; the locale lives as long as `self`.
        unsafe { iswdigit_l(u32::from(letter), self.locale) != 0 }
    }

    /// True for spaces.
    pub fn is_space(&self, letter: char) -> bool {
        // SAFETY: the function takes any number; the locale lives as long as `self`.
        unsafe { iswspace_l(u32::from(letter), self.locale) != 0 }
    }

    /// A class of characters by its name in POSIX: `alpha`, `digit`, `space`.
    ///
    /// # Panics
    /// When the locale has no such class; it has all of POSIX's.
    pub fn class(&self, name: &CStr) -> LocaleClass<'_> {
        // SAFETY: the name ends with a zero and lives through the call; the locale lives as long as `self`.
        let class = unsafe { wctype_l(name.as_ptr(), self.locale) };
        assert!(class != 0, "a locale has all classes of POSIX, and {name:?} is none of them");
        LocaleClass { collation: self, class }
    }

    fn compare_strings(&self, a: &CStr, b: &CStr) -> Ordering {
        // SAFETY: both strings end with a zero and live through the call, which only reads them; the locale
        // lives as long as `self`.
        unsafe { strcoll_l(a.as_ptr(), b.as_ptr(), self.locale) }.cmp(&0)
    }
}

impl Drop for LocaleCollation {
    fn drop(&mut self) {
        // SAFETY: `newlocale` made the locale, nobody else has it, and it is not used again.
        unsafe { libc::freelocale(self.locale) }
    }
}

/// A class of characters of a locale whose character set is to be one of Unicode's.
#[derive(Debug)]
pub struct LocaleClass<'l> {
    collation: &'l LocaleCollation,
    class: libc::c_ulong,
}

impl LocaleClass<'_> {
    /// True for a character of the class.
    pub fn has(&self, letter: char) -> bool {
        // SAFETY: the function takes any number; `wctype_l` gave the class for this locale, which lives as long as `self`.
        unsafe { iswctype_l(u32::from(letter), self.class, self.collation.locale) != 0 }
    }
}

/// Calls `with` the text up to its first zero, and a zero behind it.
fn with_zero<T>(text: &[u8], with: impl FnOnce(&CStr) -> T) -> T {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.len() > SHORT_TEXT {
        return with(&CString::new(text).unwrap_or_default());
    }
    let mut short = [0; SHORT_TEXT + 1];
    short[..text.len()].copy_from_slice(text);
    with(CStr::from_bytes_until_nul(&short).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_that_is_not_there_is_an_error() {
        let error = LocaleCollation::new(b"xx_NOWHERE.UTF-8").unwrap_err();
        if HAS_LOCALES {
            assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        } else {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        }
        let error = LocaleCollation::new(b"C\0").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    /// musl's `newlocale` takes `en_US.UTF-8` and then compares bytes: an index built so would have been in an order
    /// that its server does not follow, and nothing would have said so.
    #[test]
    fn without_locales_every_name_but_c_is_refused() {
        for name in [&b"en_US.UTF-8"[..], b"de_DE.utf8", b"C.UTF-8", b"c", b""] {
            let error = check_known(name, false).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{name:?}");
            assert!(check_known(name, true).is_ok());
        }
        for name in [&b"C"[..], b"POSIX"] {
            assert!(check_known(name, false).is_ok());
            assert!(LocaleCollation::new(name).is_ok());
        }
        assert_eq!(libc_version().is_some(), HAS_LOCALES);
        assert!(HAS_LOCALES || LocaleCollation::new(b"en_US.UTF-8").is_err());
    }

    #[test]
    fn c_orders_by_bytes_short_and_long_texts_alike() {
        let collation = LocaleCollation::new(b"C").unwrap();
        assert_eq!(collation.compare(b"B", b"a"), Ordering::Less);
        assert_eq!(collation.compare(b"a", b"a"), Ordering::Equal);
        assert_eq!(collation.compare(b"", b"a"), Ordering::Less);
        for length in [SHORT_TEXT - 1, SHORT_TEXT, SHORT_TEXT + 1, 5000] {
            let (mut a, mut b) = (vec![b'x'; length], vec![b'x'; length]);
            a.push(b'1');
            b.push(b'2');
            assert_eq!(collation.compare(&a, &b), Ordering::Less);
            assert_eq!(collation.compare(&b, &a), Ordering::Greater);
            assert_eq!(collation.compare(&a, &a), Ordering::Equal);
        }
    }

    #[test]
    fn a_text_is_transformed_whole_however_long_it_is() {
        let collation = LocaleCollation::new(b"C").unwrap();
        for length in [0, 1, SHORT_TEXT, 5000] {
            let (text, mut made) = (vec![b'x'; length], b"before".to_vec());
            collation.transform(&text, &mut made);
            assert_eq!(made, [&b"before"[..], &text].concat());
        }
    }

    #[test]
    fn letters_of_c_are_those_of_ascii() {
        let c = LocaleCollation::new(b"C").unwrap();
        assert_eq!((c.upper('a'), c.lower('A'), c.upper('1')), ('A', 'a', '1'));
        assert!(c.is_alphanumeric('z') && c.is_alphanumeric('0') && !c.is_alphanumeric('-'));
        assert!(c.is_letter('z') && !c.is_letter('0') && c.is_digit('0') && c.is_space(' '));
        let upper = c.class(c"upper");
        assert!(upper.has('Z') && !upper.has('z') && !upper.has('É'));
    }

    #[test]
    fn a_language_has_letters_of_its_own_where_it_is_installed() {
        let Ok(locale) = LocaleCollation::new(b"en_US.UTF-8") else {
            eprintln!("SKIPPED: the locale en_US.UTF-8 is not installed");
            return;
        };
        let (upper, space) = (locale.class(c"upper"), locale.class(c"space"));
        assert!(upper.has('É') && !upper.has('é') && space.has('\u{3000}') && !space.has('é'));
    }

    #[test]
    fn what_comes_after_a_zero_does_not_count() {
        let collation = LocaleCollation::new(b"C").unwrap();
        assert_eq!(collation.compare(b"name\0\0\0", b"name"), Ordering::Equal);
    }

    #[test]
    fn a_language_has_an_order_of_its_own_where_it_is_installed() {
        let Ok(collation) = LocaleCollation::new(b"en_US.UTF-8") else {
            eprintln!("SKIPPED: the locale en_US.UTF-8 is not installed");
            return;
        };
        assert_eq!(collation.compare(b"a", b"B"), Ordering::Less);
        assert_eq!(collation.compare("é".as_bytes(), b"f"), Ordering::Less);
    }
}
