#[derive(Debug, thiserror::Error)] #[error("x")] pub struct EncodingError;
impl EncodingError { pub fn is_usage(&self) -> bool { true } }
pub struct Transcoder;
impl Transcoder { pub fn new(_: i32, _: &str) -> Result<Option<Self>, EncodingError> { Ok(None) } pub fn convert(&self, _: &[u8], _: &mut Vec<u8>) -> Result<(), EncodingError> { Ok(()) } }
