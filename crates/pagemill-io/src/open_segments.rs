//! The open segment files of one fork: opened when first read, at most [`MOST_OPEN`] at once.
//!
//! Why bounded: a table of 32 TB has 32,767 segments, a process by default 1024 descriptors.
//!
//! Invariants: no segment appears twice; the most recently used comes first, and the last one gives
//! way. A file in use by a thread stays open until that thread lets go of it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::storage::File;

/// Descriptors that one fork holds at most.
pub(crate) const MOST_OPEN: usize = 64;

/// Shared by all threads that read the fork.
#[derive(Debug, Default)]
pub(crate) struct OpenSegments {
    most_recent_first: Mutex<Vec<(u32, Arc<dyn File>)>>,
}

impl OpenSegments {
    /// The file of a segment, from `open` if it is not open. The lock is held meanwhile, so that
    /// two threads never open the same segment.
    pub(crate) fn get(
        &self,
        segment: u32,
        open: impl FnOnce() -> Result<Box<dyn File>>,
    ) -> Result<Arc<dyn File>> {
        let mut files = self.most_recent_first.lock().unwrap_or_else(PoisonError::into_inner);
        match files.iter().position(|(number, _)| *number == segment) {
            Some(place) => files[..=place].rotate_right(1),
            None => {
                let file = Arc::from(open()?);
                files.truncate(MOST_OPEN - 1);
                files.insert(0, (segment, file));
            }
        }
        Ok(Arc::clone(&files[0].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};
    use std::io;

    #[derive(Debug)]
    struct NoFile;

    impl File for NoFile {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }
        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }
    }

    fn opens(segments: &OpenSegments, segment: u32) -> bool {
        let mut opened = false;
        let file = segments.get(segment, || {
            opened = true;
            Ok(Box::new(NoFile))
        });
        file.unwrap();
        opened
    }

    #[test]
    fn a_segment_is_opened_once_until_too_many_others_were_used_since() {
        let segments = OpenSegments::default();
        for segment in 0..MOST_OPEN as u32 {
            assert!(opens(&segments, segment));
        }
        assert!(!opens(&segments, 0), "still open");
        assert!(opens(&segments, 1000), "takes the place of segment 1");
        assert!(!opens(&segments, 0), "was used again, so it stayed");
        assert!(opens(&segments, 1));
        assert_eq!(segments.most_recent_first.lock().unwrap().len(), MOST_OPEN);
    }

    #[test]
    fn a_failed_open_changes_nothing() {
        let segments = OpenSegments::default();
        assert!(opens(&segments, 0));
        let failed = segments.get(1, || Err(Error::new(ErrorKind::NotFound, "x")));
        assert!(failed.is_err());
        assert!(!opens(&segments, 0));
        assert!(opens(&segments, 1));
    }
}
