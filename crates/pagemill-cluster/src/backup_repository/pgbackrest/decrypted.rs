//! [`DecryptingReader`], [`DecryptedFile`]: what is stored encrypted, as a stream and as a file that is read anywhere.
//!
//! Invariant: what fills up the last block is never handed out.

use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

use pagemill_format::pgbackrest::{CIPHER_BLOCK, Cipher, CipherHeader, Passphrase, contents_len};
use pagemill_io::File;

use super::fault::StoredFault;
use super::stored_backup::Stretch;

/// Bytes decrypted at once.
const CHUNK: usize = 256 << 10;

/// How something is encrypted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encryption<'a> {
    pub(super) passphrase: &'a Passphrase,
    pub(super) header: CipherHeader,
}

impl Stretch {
    /// The error of something encrypted that is not as it should be.
    fn not_decrypted(&self, cause: pagemill_format::Error) -> io::Error {
        let (path, offset) = (self.path.clone(), self.offset);
        StoredFault::Decrypt { path, offset, cause }.into()
    }
}

/// What an encrypted stretch has in it, from its beginning.
pub(super) struct DecryptingReader<'a, R> {
    from: R,
    stretch: &'a Stretch,
    cipher: Cipher,
    /// The encrypted block before those that come next.
    before: [u8; CIPHER_BLOCK],
    /// Read and not decrypted: the last block so far, which may be the last of all.
    held: Vec<u8>,
    decrypted: Vec<u8>,
    handed_out: usize,
    is_at_end: bool,
}

impl<'a, R: Read> DecryptingReader<'a, R> {
    /// Reads the header.
    ///
    /// # Errors
    /// As the reader; a header that is none.
    pub(super) fn new(
        mut from: R,
        encryption: Encryption<'_>,
        stretch: &'a Stretch,
    ) -> io::Result<Self> {
        let mut header = Vec::new();
        from.by_ref().take(encryption.header.bytes() as u64).read_to_end(&mut header)?;
        let cipher = Cipher::new(encryption.passphrase, encryption.header, &header);
        let cipher = cipher.map_err(|error| stretch.not_decrypted(error))?;
        let (before, held, decrypted) = (cipher.start(), Vec::new(), Vec::new());
        Ok(Self { from, stretch, cipher, before, held, decrypted, handed_out: 0, is_at_end: false })
    }

    /// Decrypts what comes next.
    fn go_on(&mut self) -> io::Result<()> {
        let mut blocks = std::mem::take(&mut self.held);
        let got = self.from.by_ref().take(CHUNK as u64).read_to_end(&mut blocks)?;
        self.is_at_end = got < CHUNK;
        if !self.is_at_end {
            self.held = blocks.split_off(blocks.len() - CIPHER_BLOCK);
        }
        let before = self.before;
        if let Some(last) = blocks.last_chunk() {
            self.before = *last;
        }
        let not_decrypted = |error| self.stretch.not_decrypted(error);
        self.cipher.decrypt(before, &mut blocks).map_err(not_decrypted)?;
        if self.is_at_end {
            blocks.truncate(contents_len(&blocks).map_err(not_decrypted)?);
        }
        (self.decrypted, self.handed_out) = (blocks, 0);
        Ok(())
    }
}

impl<R: Read> Read for DecryptingReader<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.handed_out == self.decrypted.len() {
            if self.is_at_end {
                return Ok(0);
            }
            self.go_on()?;
        }
        let left = &self.decrypted[self.handed_out..];
        let len = left.len().min(buf.len());
        buf[..len].copy_from_slice(&left[..len]);
        self.handed_out += len;
        Ok(len)
    }
}

/// A file that is stored encrypted and not compressed: any part of it is decrypted by itself.
#[derive(Debug)]
pub(super) struct DecryptedFile {
    file: Arc<dyn File>,
    stretch: Stretch,
    header: CipherHeader,
    passphrase: Passphrase,
    /// Bytes of its contents.
    len: u64,
    cipher: OnceLock<Cipher>,
}

impl DecryptedFile {
    pub(super) fn new(
        file: Arc<dyn File>,
        stretch: Stretch,
        encryption: Encryption<'_>,
        len: u64,
    ) -> Self {
        let (header, passphrase) = (encryption.header, encryption.passphrase.clone());
        Self { file, stretch, header, passphrase, len, cipher: OnceLock::new() }
    }

    fn cipher(&self) -> io::Result<&Cipher> {
        if let Some(cipher) = self.cipher.get() {
            return Ok(cipher);
        }
        let mut header = vec![0; self.header.bytes()];
        self.fill(&mut header, 0)?;
        let cipher = Cipher::new(&self.passphrase, self.header, &header);
        let cipher = cipher.map_err(|error| self.stretch.not_decrypted(error))?;
        Ok(self.cipher.get_or_init(|| cipher))
    }

    /// Reads what is stored, all of it.
    fn fill(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buf.len() {
            let at = self.stretch.offset.saturating_add(offset).saturating_add(done as u64);
            match self.file.read_at(&mut buf[done..], at) {
                Ok(0) => {
                    let path = self.stretch.path.clone();
                    return Err(StoredFault::Cut { path, end: at }.into());
                }
                Ok(got) => done += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl File for DecryptedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = buf.len().min(left).min(CHUNK);
        if len == 0 {
            return Ok(0);
        }
        let cipher = self.cipher()?;
        let block = CIPHER_BLOCK as u64;
        let (first, skipped) = (offset / block * block, (offset % block) as usize);
        // The encrypted block before is part of what decrypts the first one.
        let before = if first == 0 { 0 } else { CIPHER_BLOCK };
        let mut stored = vec![0; before + (skipped + len).next_multiple_of(CIPHER_BLOCK)];
        self.fill(&mut stored, self.header.bytes() as u64 + first - before as u64)?;
        let (start, blocks) = stored.split_at_mut(before);
        let start = start.first_chunk().copied().unwrap_or_else(|| cipher.start());
        cipher.decrypt(start, blocks).map_err(|error| self.stretch.not_decrypted(error))?;
        buf[..len].copy_from_slice(&blocks[skipped..skipped + len]);
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}
