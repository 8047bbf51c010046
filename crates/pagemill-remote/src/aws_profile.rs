//! The files in which `aws` keeps keys and settings: `~/.aws/credentials` and `~/.aws/config`, as far as they say them outright.
//!
//! A profile that names a role, a process or single sign-on is not followed.
//!
//! Source: "Configuration and credential file settings" in the guide of the AWS CLI.
//!
//! Invariant: a file that cannot be read says nothing; keys are handed on and never shown.

use std::collections::HashMap;
use std::path::PathBuf;

use object_store::aws::AmazonS3ConfigKey as Key;
use pagemill_io::HostFiles;

/// No such file is longer.
const MOST_BYTES: u64 = 1 << 20;

/// What the files say of one profile.
#[derive(Default)]
pub(crate) struct AwsProfile(HashMap<String, String>);

impl AwsProfile {
    /// The profile that `AWS_PROFILE` names, or the default one.
    pub(crate) fn read() -> Self {
        let profile = std::env::var("AWS_PROFILE").unwrap_or_else(|_| "default".into());
        let config = file("AWS_CONFIG_FILE", "config");
        let mut found = section(&config, &format!("profile {profile}"));
        found.extend(section(&config, &profile));
        found.extend(section(&file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), &profile));
        Self(found)
    }

    /// A whole set of keys, or none.
    pub(crate) fn credentials(&self) -> Vec<(Key, String)> {
        let id = self.value(Key::AccessKeyId, "aws_access_key_id");
        let secret = self.value(Key::SecretAccessKey, "aws_secret_access_key");
        let (Some(id), Some(secret)) = (id, secret) else { return Vec::new() };
        let token = self.value(Key::Token, "aws_session_token");
        [id, secret].into_iter().chain(token).collect()
    }

    /// Where to ask.
    pub(crate) fn settings(&self) -> Vec<(Key, String)> {
        let named = [(Key::Region, "region"), (Key::Endpoint, "endpoint_url")];
        named.into_iter().filter_map(|(key, name)| self.value(key, name)).collect()
    }

    fn value(&self, key: Key, name: &str) -> Option<(Key, String)> {
        Some((key, self.0.get(name).filter(|value| !value.is_empty())?.clone()))
    }
}

/// The text of a file, where the variable or the home directory has it.
fn file(variable: &str, name: &str) -> String {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let at_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".aws").join(name));
    let path = named.or_else(at_home);
    let bytes = path.and_then(|path| HostFiles::real().read_file(&path, MOST_BYTES).ok());
    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
}

/// What a section says.
fn section(text: &str, name: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut within = false;
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            within = header.split_whitespace().collect::<Vec<_>>().join(" ") == name;
        } else if within
            && !is_nested
            && !line.starts_with(['#', ';'])
            && let Some((key, value)) = line.split_once('=')
        {
            found.insert(key.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_its_section_and_keys_come_only_as_a_pair() {
        let text = "[default]\naws_access_key_id = A\n\n[ profile  x ]\nregion=eu-west-1\ns3 =\n  endpoint_url = no\n# region = none\n[y]\nAWS_ACCESS_KEY_ID=B\naws_secret_access_key=C\n";
        let found = section(text, "profile x");
        assert_eq!(found.get("region").map(String::as_str), Some("eu-west-1"));
        assert_eq!(found.get("endpoint_url"), None);
        assert!(AwsProfile(section(text, "default")).credentials().is_empty());
        assert_eq!(AwsProfile(section(text, "y")).credentials().len(), 2);
    }
}
