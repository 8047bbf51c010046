//! The files of a directory as the objects of a bucket, whatever it is called.
//!
//! Invariants: a directory is there when a file lies below it; the etag changes with the file's length and time of change.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use futures_util::stream;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CommonPrefix,
    CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CreateMultipartUploadInput,
    CreateMultipartUploadOutput, ETag, GetObjectInput, GetObjectOutput, HeadBucketInput,
    HeadBucketOutput, ListObjectsV2Input, ListObjectsV2Output, Object, PutObjectInput,
    PutObjectOutput, StreamingBlob, UploadPartInput, UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};

use crate::uploads::{UNFINISHED, Uploads, put, received};

/// Bytes of a body that are sent at once.
const CHUNK: usize = 64 << 10;

/// Has a request answered with one byte too few, which it says.
pub(crate) const SHORT: &str = "x-test-short";

/// A directory as a bucket.
#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) root: PathBuf,
    /// What the bucket is called; another one is not there.
    pub(crate) bucket: String,
    /// Names that a page of a listing has.
    pub(crate) page: usize,
    pub(crate) uploads: Uploads,
}

impl Objects {
    fn check(&self, bucket: &str) -> S3Result<()> {
        match bucket == self.bucket {
            true => Ok(()),
            false => Err(s3_error!(NoSuchBucket)),
        }
    }

    /// Makes an object, and tells its etag.
    fn put(&self, key: &str, bytes: &[u8]) -> S3Result<ETag> {
        let path = self.root.join(key);
        let made = put(&path, bytes).and_then(|()| std::fs::metadata(&path));
        made.map(|metadata| etag(&metadata)).map_err(|error| s3_error!(error, InternalError))
    }

    /// What lies right below a prefix that ends with a slash or is empty.
    fn names(&self, prefix: &str) -> io::Result<Vec<(String, Option<std::fs::Metadata>)>> {
        let directory = self.root.join(prefix);
        if !prefix.is_empty() && !prefix.ends_with('/') || !directory.is_dir() {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // One that was renamed meanwhile is listed by its new name, or not yet.
            let Ok(metadata) = entry.metadata() else { continue };
            if name.starts_with(UNFINISHED) {
                continue;
            } else if metadata.is_file() {
                names.push((format!("{prefix}{name}"), Some(metadata)));
            } else if metadata.is_dir() && has_files(&entry.path())? {
                names.push((format!("{prefix}{name}/"), None));
            }
        }
        names.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(names)
    }

    /// All objects below such a prefix.
    fn names_below(&self, prefix: &str) -> io::Result<Vec<(String, Option<std::fs::Metadata>)>> {
        let (mut files, mut waiting) = (Vec::new(), vec![prefix.to_owned()]);
        while let Some(directory) = waiting.pop() {
            for (name, metadata) in self.names(&directory)? {
                match metadata {
                    None => waiting.push(name),
                    Some(_) => files.push((name, metadata)),
                }
            }
        }
        files.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(files)
    }
}

fn has_files(directory: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() || kind.is_dir() && has_files(&entry.path())? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn etag(metadata: &std::fs::Metadata) -> ETag {
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    ETag::Strong(format!("{:x}-{:x}", changed.unwrap_or_default().as_nanos(), metadata.len()))
}

#[async_trait::async_trait]
impl S3 for Objects {
    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let prefix = input.prefix.as_deref().unwrap_or_default();
        let names = match input.delimiter.as_deref() {
            Some("/") => self.names(prefix),
            None => self.names_below(prefix),
            Some(_) => return Err(s3_error!(NotImplemented, "names are divided by slashes only")),
        };
        let names = names.map_err(|error| s3_error!(error, InternalError))?;
        let behind = input.continuation_token.unwrap_or_default();
        let mut left = names.into_iter().filter(|(name, _)| *name > behind).peekable();
        let (mut contents, mut prefixes, mut last) = (Vec::new(), Vec::new(), None);
        for (name, metadata) in left.by_ref().take(self.page) {
            last = Some(name.clone());
            match metadata {
                None => prefixes.push(CommonPrefix { prefix: Some(name) }),
                Some(metadata) => contents.push(Object {
                    e_tag: Some(etag(&metadata)),
                    size: i64::try_from(metadata.len()).ok(),
                    last_modified: metadata.modified().ok().map(Into::into),
                    key: Some(name),
                    ..Object::default()
                }),
            }
        }
        let more = left.peek().is_some();
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: input.prefix,
            delimiter: input.delimiter,
            contents: Some(contents),
            common_prefixes: Some(prefixes),
            is_truncated: Some(more),
            next_continuation_token: last.filter(|_| more),
            ..ListObjectsV2Output::default()
        }))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let opened = std::fs::File::open(self.root.join(&input.key));
        let file = opened.map_err(|_| s3_error!(NoSuchKey))?;
        let metadata = file.metadata().map_err(|error| s3_error!(error, InternalError))?;
        if !metadata.is_file() {
            return Err(s3_error!(NoSuchKey));
        }
        let (etag, len) = (etag(&metadata), metadata.len());
        let wanted = input.if_match.as_ref().and_then(|wanted| wanted.as_etag());
        if wanted.is_some_and(|wanted| *wanted != etag) {
            return Err(s3_error!(PreconditionFailed));
        }
        let range = input.range.map(|range| range.check(len)).transpose();
        let mut range = range.map_err(|_| s3_error!(InvalidRange))?;
        if let Some(range) = range.as_mut().filter(|_| request.headers.contains_key(SHORT)) {
            range.end = range.end.saturating_sub(1).max(range.start + 1);
        }
        let content_range =
            range.as_ref().map(|range| format!("bytes {}-{}/{len}", range.start, range.end - 1));
        let range = range.unwrap_or(0..len);
        let content_length = i64::try_from(range.end - range.start).ok();
        let chunks = stream::unfold((file, range), |(file, range)| async move {
            let now = usize::try_from(range.end - range.start).unwrap_or(CHUNK).min(CHUNK);
            if now == 0 {
                return None;
            }
            let mut chunk = vec![0; now];
            let read = file.read_exact_at(&mut chunk, range.start).map(|()| Bytes::from(chunk));
            Some((read, (file, range.start + now as u64..range.end)))
        });
        Ok(S3Response::new(GetObjectOutput {
            body: Some(StreamingBlob::wrap(Box::pin(chunks))),
            content_length,
            content_range,
            e_tag: Some(etag),
            last_modified: metadata.modified().ok().map(Into::into),
            ..GetObjectOutput::default()
        }))
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.check(&request.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let e_tag = Some(self.put(&input.key, &received(input.body).await?)?);
        Ok(S3Response::new(PutObjectOutput { e_tag, ..PutObjectOutput::default() }))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        Ok(S3Response::new(CreateMultipartUploadOutput {
            upload_id: Some(self.uploads.begin()),
            bucket: Some(input.bucket),
            key: Some(input.key),
            ..CreateMultipartUploadOutput::default()
        }))
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let input = request.input;
        let bytes = received(input.body).await?;
        let e_tag = Some(ETag::Strong(format!("{}-{}", input.part_number, bytes.len())));
        self.uploads.add(&input.upload_id, input.part_number, bytes)?;
        Ok(S3Response::new(UploadPartOutput { e_tag, ..UploadPartOutput::default() }))
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = request.input;
        let e_tag = Some(self.put(&input.key, &self.uploads.end(&input.upload_id)?)?);
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            e_tag,
            ..CompleteMultipartUploadOutput::default()
        }))
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.uploads.end(&request.input.upload_id)?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
}
