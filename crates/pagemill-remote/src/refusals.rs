//! What a store's refusal means, by the status and the code that its server gave: [`refused`].
//!
//! Codes: "Error responses" in the reference of S3's API, "Common REST API error codes" of Azure, "HTTP status and error codes
//! for XML" of Google.
//!
//! Invariant: of the words of a client only those are repeated that stand for no answer of a server: URLs can have signatures.

use object_store::Error as StoreError;

use crate::error::RemoteError;
use crate::http_requests::Refused;
use crate::object::innermost;

/// What stands behind an error of a store that was asked for something.
pub(crate) fn refused(
    store: &str,
    request: &'static str,
    error: &StoreError,
    why: Option<Refused>,
) -> RemoteError {
    let Some(why) = why else { return without_answer(store, error) };
    if why.for_credentials {
        return RemoteError::NoCredentials(cloud_of(store));
    }
    let Refused { status, said, region, tries, waited, .. } = why;
    let of_expiry =
        ["ExpiredToken", "TokenRefreshRequired", "RequestExpired", "ExpiredTokenException"];
    let of_identity = [
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "InvalidToken",
        "AuthenticationFailed",
        "InvalidAuthenticationInfo",
        "NoAuthenticationInformation",
    ];
    let of_bucket = ["NoSuchBucket", "ContainerNotFound", "InvalidBucketName"];
    let of_region =
        ["AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"];
    let said_or_status = if said.is_empty() { format!("status {status}") } else { said.clone() };
    match status {
        0 => RemoteError::Unreachable { reason: said, tries, waited },
        _ if of_expiry.contains(&&*said) => RemoteError::Expired(said),
        _ if of_identity.contains(&&*said) => RemoteError::Unauthenticated(said),
        _ if of_bucket.contains(&&*said) => RemoteError::NoBucket(store.to_owned()),
        _ if of_region.contains(&&*said) => RemoteError::WrongRegion(region),
        301 | 307 | 308 => RemoteError::WrongRegion(region),
        401 => RemoteError::Unauthenticated(said_or_status),
        403 => RemoteError::Denied { request, said: said_or_status },
        405 | 501 => RemoteError::NoListing(said_or_status),
        404 if request == "listing" => RemoteError::NoBucket(store.to_owned()),
        408 | 429 | 500.. => {
            let said = if said.is_empty() { said } else { format!(" ({said})") };
            RemoteError::Busy { status, said, tries, waited }
        }
        _ => RemoteError::Other(format!("the server answered {said_or_status}")),
    }
}

/// No request was sent, or its answer was not understood.
fn without_answer(store: &str, error: &StoreError) -> RemoteError {
    let words = innermost(error);
    let lower = words.to_lowercase();
    match lower.contains("credential") || lower.contains("token") || lower.contains("account") {
        true => RemoteError::NoCredentials(cloud_of(store)),
        false => RemoteError::Other(words),
    }
}

/// Who is asked, in words.
pub(crate) fn cloud_of(store: &str) -> &'static str {
    match store.split_once("://").map_or(store, |(scheme, _)| scheme) {
        "s3" | "s3a" => "S3",
        "gs" => "Google Cloud Storage",
        "az" | "abfs" | "abfss" => "Azure",
        _ => "this server",
    }
}
