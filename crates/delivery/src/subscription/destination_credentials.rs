//! Collects the credentials that requests to a destination contain, and those that responses may
//! repeat.
//!
//! This module is separate because only the code that stores parts of a response needs these
//! values, to hide them.

use crate::event::Event;
use crate::subscription::auth::TokenSource;
use crate::subscription::credentials::{Credentials, is_credential, is_credential_parameter};
use crate::subscription::destination::{Confidential, Destination};
use crate::subscription::header::{self, Value};
use crate::subscription::secret::{Keyring, Secret};

impl Destination {
    /// Collects the credentials in a request with this event: secrets, headers whose names mark
    /// them as credentials, and the confidential parts of the URL.
    #[must_use]
    pub fn credentials(&self, keyring: &Keyring, event: Option<&Event>) -> Credentials {
        let mut credentials = self.header_credentials(keyring, event);
        credentials.add_url(&self.url);
        if self.hide_path {
            credentials.add_path(&self.url);
        }
        credentials
    }

    /// Collects the credentials of at least eight bytes. An event does not contain one of this length
    /// by chance. They come from:
    /// - secrets, and headers whose value is written in a document;
    /// - the user info of the URL;
    /// - query values whose parameter name marks a credential;
    /// - the path, if `hidePath` is set.
    #[must_use]
    pub fn certain_credentials(&self, keyring: &Keyring) -> Credentials {
        let mut credentials = self.header_credentials(keyring, None);
        credentials.add_user(&self.url);
        credentials.add_query(&self.url, is_credential_parameter);
        if self.hide_path {
            credentials.add_path(&self.url);
        }
        credentials.certain()
    }

    /// Collects the credentials in headers, templates, tokens and AWS signatures.
    fn header_credentials(&self, keyring: &Keyring, event: Option<&Event>) -> Credentials {
        let mut credentials = Credentials::default();
        // Signing secrets are not part of a request, so no response can repeat them.
        let Confidential { headers, auth, signing: _, templates } = self.confidential();
        let of_templates = templates.into_iter().filter_map(|name| keyring.get(name));
        of_templates.for_each(|value| credentials.add_header(value.expose()));
        for header in headers {
            let is_credential = is_credential(&header.name);
            match &header.value {
                Value::Secret(name) => {
                    let value = keyring.get(name);
                    value.into_iter().for_each(|value| credentials.add_header(value.expose()));
                }
                Value::Concealed(value) => credentials.add_header(value),
                Value::Static(value) if is_credential => credentials.add_header(value),
                Value::Path(path) if is_credential => {
                    let sent = event.and_then(|event| header::of_event(path, event));
                    sent.into_iter().for_each(|sent| credentials.add_header_of_event(&sent.value));
                }
                Value::Static(_) | Value::Path(_) | Value::Template(_) => {}
            }
        }
        let of_auth = auth.and_then(|auth| auth.header(keyring).ok()?);
        of_auth.iter().for_each(|(_, value)| credentials.add_header(value));
        for secret in self.unsent_secrets(keyring) {
            credentials.add_header(secret.expose());
        }
        // An AWS service that refuses a signature repeats the signed text, which contains the
        // session token.
        if let Some(token) = keyring.aws().and_then(|aws| aws.session_token.as_ref()) {
            credentials.add(token.expose().as_bytes());
        }
        credentials
    }

    /// Collects the secrets that must be hidden in responses and in rendered templates.
    #[must_use]
    pub fn hidden_secrets(&self, keyring: &Keyring) -> Vec<Secret> {
        let mut hidden = self.unsent_secrets(keyring);
        hidden.extend(self.template_secrets().filter_map(|name| keyring.get(name)).cloned());
        hidden
    }

    /// Returns the secrets that a response may repeat although its request does not contain them.
    /// These are tokens that were refused, and the secret of an OAuth client. The client's secret
    /// is sent to the token server, which the destination's operator may also run.
    #[must_use]
    pub fn unsent_secrets(&self, keyring: &Keyring) -> Vec<Secret> {
        let mut unsent = keyring.refused().to_vec();
        if let Some(TokenSource::Client(client)) = self.token_source()
            && let Some(secret) = keyring.get(&client.client_secret)
        {
            unsent.push(Secret::new(client.basic(secret.expose().trim())));
            unsent.push(Secret::new(secret.expose().trim().to_owned()));
        }
        unsent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::auth::Auth;
    use crate::subscription::auth::oauth2::{ClientCredentials, Style};

    #[test]
    fn what_a_client_shows_to_its_token_server_and_a_refused_token_are_hidden_in_answers() {
        let client = ClientCredentials {
            token_url: "https://login.example.com/".parse().unwrap(),
            client_id: "acme".to_owned(),
            client_secret: "env:CLIENT".parse().unwrap(),
            scope: None,
            audience: None,
            resource: None,
            style: Style::Basic,
            parameters: Vec::new(),
        };
        let destination = Destination {
            auth: Some(Auth::OAuth2(Box::new(client))),
            ..Destination::new("https://example.com/".parse().unwrap(), 1)
        };
        let secret = |text: &str| Secret::new(text.to_owned());
        let keyring: Keyring =
            [("env:CLIENT".parse().unwrap(), secret("s3cret-of-acme"))].into_iter().collect();
        let keyring = keyring.with_token(secret("first-token")).with_token(secret("second-token"));
        // printf 'acme:s3cret-of-acme' | base64
        for value in
            ["first-token", "second-token", "s3cret-of-acme", "YWNtZTpzM2NyZXQtb2YtYWNtZQ=="]
        {
            let text = format!("you sent {value}, now");
            for credentials in
                [destination.credentials(&keyring, None), destination.certain_credentials(&keyring)]
            {
                assert_eq!(credentials.hide_in_text(text.clone()), "you sent [secret], now");
            }
        }
    }
}
