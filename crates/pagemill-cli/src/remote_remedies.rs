//! What to type or to set where an object store did not give what was asked for.
//!
//! Apart from the other remedies, as a program without object stores has none of these errors.
//!
//! Invariant: variables are named as the clouds' own tools name them.

use pagemill_remote::RemoteError;

/// What helps against an error of a store; nothing for any other.
pub(crate) fn of(error: &std::io::Error) -> &'static str {
    match RemoteError::of(error) {
        Some(RemoteError::NoCredentials("S3")) => {
            ": set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        }
        Some(RemoteError::NoCredentials("Azure")) => {
            ": set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or a client's id and secret"
        }
        Some(RemoteError::NoCredentials("Google Cloud Storage")) => {
            ": set GOOGLE_APPLICATION_CREDENTIALS, or log in with gcloud"
        }
        Some(RemoteError::Expired(_)) => ": get new ones, and start again",
        Some(RemoteError::Unauthenticated(_)) => {
            ": check the key, its secret and the session token"
        }
        Some(RemoteError::Denied { request: "listing", .. }) => {
            ": it takes the right to list the bucket (s3:ListBucket)"
        }
        Some(RemoteError::Denied { .. }) => ": it takes the right to read objects (s3:GetObject)",
        Some(RemoteError::NoBucket(_)) => ": check its name, and the endpoint (AWS_ENDPOINT_URL)",
        Some(RemoteError::WrongRegion(_)) => ": set AWS_REGION to it",
        Some(RemoteError::Busy { .. }) => ": try again later",
        Some(RemoteError::Unreachable { .. }) => ": check the network, and the endpoint",
        Some(RemoteError::NoListing(_)) => ": a web server has to answer PROPFIND (WebDAV)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_credentials_is_told_where_they_are_looked_for() {
        let told = |cloud| of(&RemoteError::NoCredentials(cloud).into());
        assert!(told("S3").contains("AWS_PROFILE") && told("Azure").contains("AZURE_STORAGE"));
        assert_eq!(of(&std::io::Error::other("x")), "");
    }
}
