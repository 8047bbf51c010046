//! [`Passphrase`], [`Cipher`]: how pgBackRest encrypts: AES-256 in CBC mode, as `openssl enc -aes-256-cbc -md sha1` has it.
//!
//! ```text
//! "Salted__" │ salt: 8 bytes │ blocks of 16 bytes; the last one is filled up with bytes that tell how many they are
//! ```
//!
//! Files have all of that. Pieces of a bundle and blocks of a file begin with the salt ([`CipherHeader::Raw`]). A block is decrypted by
//! the key and by the encrypted block before it, so any stretch can be read without what is before.
//!
//! Which passphrase: the user's for `backup.info` and `archive.info`; the one that `archive.info` has for WAL; the one that
//! `backup.info` has for manifests; and the one that a manifest has for the files of its backup.
//!
//! Invariant: neither passphrases nor keys are printed, not even by `Debug`.
//!
//! Source: `cipherBlockProcessBlock` in `src/common/crypto/cipherBlock.c`, `infoBackupNewLoad` in `src/info/infoBackup.c`, pgBackRest 2.59;
//! `EVP_BytesToKey(3)` of OpenSSL.

use std::fmt;

use aes::Aes256;
use cbc::Decryptor;
use cbc::cipher::array::Array;
use cbc::cipher::{BlockModeDecrypt as _, KeyIvInit as _};
use sha1::{Digest as _, Sha1};

use crate::error::{Error, Result};

/// What encrypted files begin with.
const MAGIC: &[u8] = b"Salted__";
const SALT_BYTES: usize = 8;
const STRUCTURE: &str = "encrypted file";

/// Bytes that are encrypted together.
pub const CIPHER_BLOCK: usize = 16;

/// What something is encrypted by.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(Box<[u8]>);

impl Passphrase {
    /// The passphrase of these bytes.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// What a whole file was before it was encrypted.
    ///
    /// # Errors
    /// Corrupt: it is cut short, or was encrypted by another passphrase, as nearly always shows.
    pub fn decrypt(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let header = CipherHeader::Salted;
        let (head, blocks) = bytes.split_at_checked(header.bytes()).ok_or_else(cut)?;
        let cipher = Cipher::new(self, header, head)?;
        let mut blocks = blocks.to_vec();
        cipher.decrypt(cipher.start, &mut blocks)?;
        blocks.truncate(contents_len(&blocks)?);
        Ok(blocks)
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase")
    }
}

/// True of what begins as an encrypted file.
pub fn is_encrypted(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// What is in front of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CipherHeader {
    /// A word by which it is known, and the salt.
    Salted,
    /// The salt alone.
    Raw,
}

impl CipherHeader {
    /// Its bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Salted => MAGIC.len() + SALT_BYTES,
            Self::Raw => SALT_BYTES,
        }
    }
}

/// What decrypts one encrypted piece.
#[derive(Clone)]
pub struct Cipher {
    key: [u8; 32],
    start: [u8; CIPHER_BLOCK],
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}

impl Cipher {
    /// What decrypts a piece with this header.
    ///
    /// # Errors
    /// Corrupt: the header is cut short or does not begin as it should.
    pub fn new(passphrase: &Passphrase, kind: CipherHeader, header: &[u8]) -> Result<Self> {
        let salt = match kind {
            CipherHeader::Salted => header.strip_prefix(MAGIC).ok_or_else(|| {
                Error::corrupt(STRUCTURE, 0, "it does not begin as an encrypted file")
            })?,
            CipherHeader::Raw => header,
        };
        let salt: &[u8; SALT_BYTES] = salt.try_into().map_err(|_| cut())?;
        let mut made = Vec::with_capacity(60);
        let mut last: Vec<u8> = Vec::new();
        while made.len() < 32 + CIPHER_BLOCK {
            let mut digest = Sha1::new();
            digest.update(&last);
            digest.update(&passphrase.0);
            digest.update(salt);
            last = digest.finalize().to_vec();
            made.extend_from_slice(&last);
        }
        let (mut key, mut start) = ([0; 32], [0; CIPHER_BLOCK]);
        key.copy_from_slice(&made[..32]);
        start.copy_from_slice(&made[32..32 + CIPHER_BLOCK]);
        Ok(Self { key, start })
    }

    /// What stands for the encrypted block before the first one.
    pub fn start(&self) -> [u8; CIPHER_BLOCK] {
        self.start
    }

    /// Decrypts blocks, in place, behind the encrypted block `before`.
    ///
    /// # Errors
    /// Corrupt: the last block is not whole.
    pub fn decrypt(&self, before: [u8; CIPHER_BLOCK], blocks: &mut [u8]) -> Result<()> {
        let (blocks, rest) = Array::slice_as_chunks_mut(blocks);
        if !rest.is_empty() {
            return Err(cut());
        }
        Decryptor::<Aes256>::new(&self.key.into(), &before.into()).decrypt_blocks(blocks);
        Ok(())
    }
}

/// How many of the bytes that were decrypted up to the end are contents: not those by which the last block was filled up.
///
/// # Errors
/// Corrupt: it was not filled up in this way.
pub fn contents_len(decrypted: &[u8]) -> Result<usize> {
    let len = decrypted.len();
    let filled = decrypted.last().map_or(0, |last| usize::from(*last));
    let is_filled = (1..=CIPHER_BLOCK).contains(&filled) && filled <= len;
    match is_filled && decrypted[len - filled..].iter().all(|byte| usize::from(*byte) == filled) {
        true => Ok(len - filled),
        false => Err(Error::corrupt(
            STRUCTURE,
            len,
            "it does not end as what this passphrase encrypted: it was encrypted by another one, or is damaged",
        )),
    }
}

#[cold]
fn cut() -> Error {
    Error::corrupt(STRUCTURE, 0, "it is cut short: no whole number of blocks")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf 'pages of a mill, ground finely\n' | openssl enc -aes-256-cbc -md sha1 -S 0102030405060708 -pass pass:miller`
    /// (with the header that OpenSSL 3 leaves out where the salt is given).
    const BLOCKS: [u8; 32] = [
        0x2d, 0xbc, 0x7b, 0x8e, 0x46, 0xbe, 0x99, 0xda, 0xa2, 0xdd, 0xb5, 0xcc, 0x29, 0x9d, 0x4d,
        0xc0, 0x52, 0x6b, 0x15, 0x36, 0xe7, 0x32, 0x80, 0x5a, 0x45, 0x60, 0x91, 0xb8, 0xfc, 0x48,
        0x42, 0x5c,
    ];

    fn file() -> Vec<u8> {
        [MAGIC, &[1, 2, 3, 4, 5, 6, 7, 8], &BLOCKS].concat()
    }

    #[test]
    fn what_openssl_encrypted_is_read() {
        let text = Passphrase::new(*b"miller").decrypt(&file()).unwrap();
        assert_eq!(text, b"pages of a mill, ground finely\n");
    }

    #[test]
    fn a_stretch_is_read_behind_the_block_before_it() {
        let passphrase = Passphrase::new(*b"miller");
        let cipher =
            Cipher::new(&passphrase, CipherHeader::Raw, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let (before, mut second) = (BLOCKS[..16].try_into().unwrap(), BLOCKS[16..].to_vec());
        cipher.decrypt(before, &mut second).unwrap();
        assert_eq!(second, b" ground finely\n\x01");
    }

    #[test]
    fn another_passphrase_and_what_was_cut_are_errors() {
        let file = file();
        let passphrase = Passphrase::new(*b"miller");
        assert!(Passphrase::new(*b"baker").decrypt(&file).is_err());
        for len in 0..file.len() {
            assert!(passphrase.decrypt(&file[..len]).is_err(), "{len}");
        }
        assert!(passphrase.decrypt(&[b"salted__", &file[8..]].concat()).is_err());
        assert_eq!(format!("{passphrase:?}"), "Passphrase");
    }
}
