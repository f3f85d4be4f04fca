//! How settings are shown that hold secrets: by the names of these, never by values.

use serde_json::{Value, json};

use super::{Setting, listed};
use crate::subscription::auth::Auth;
use crate::subscription::auth::identity::WebIdentity;
use crate::subscription::auth::oauth2::ClientCredentials;
use crate::subscription::auth::sigv4::SigningScope;
use crate::subscription::display;
use crate::subscription::header::{Header, Value as HeaderValue};
use crate::subscription::public_key::PublicKey;
use crate::subscription::secret::SecretName;
use crate::time::duration::format_ms;

/// The headers of a destination: names and sources of the values.
pub(crate) fn headers(headers: &[Header]) -> Setting {
    let values: Vec<Value> = headers.iter().map(header_value).collect();
    Setting::new("headers", json!(values), listed(headers.iter().map(header_text)))
}

fn header_value(header: &Header) -> Value {
    let name = &header.name;
    match &header.value {
        HeaderValue::Static(_) | HeaderValue::Concealed(_) => json!({ "name": name }),
        HeaderValue::Path(path) => json!({ "name": name, "path": path.to_string() }),
        HeaderValue::Secret(secret) => json!({ "name": name, "secret": secret.to_string() }),
    }
}

fn header_text(header: &Header) -> String {
    let name = &header.name;
    match &header.value {
        HeaderValue::Static(_) => name.clone(),
        HeaderValue::Concealed(_) => format!("{name} (concealed)"),
        HeaderValue::Path(path) => format!("{name} from {path}"),
        HeaderValue::Secret(secret) => format!("{name} from {secret}"),
    }
}

/// How a destination learns who is calling; secrets by name.
pub(crate) fn auth(auth: Option<&Auth>) -> Setting {
    let Some(auth) = auth else { return Setting::new("auth", Value::Null, "none") };
    let (fields, text) = match auth {
        Auth::Basic { user, password } => (
            json!({ "user": user, "password": password.to_string() }),
            format!("user {user}, password from {password}"),
        ),
        Auth::Bearer { token } => {
            (json!({ "token": token.to_string() }), format!("token from {token}"))
        }
        Auth::Header { name, value } => {
            (json!({ "name": name, "value": value.to_string() }), format!("{name} from {value}"))
        }
        Auth::OAuth2(client) => client_credentials(client),
        Auth::ClientCertificate { certificate, key } => (
            json!({ "certificate": certificate.to_string(), "key": key.to_string() }),
            format!("certificate from {certificate}, key from {key}"),
        ),
        Auth::AwsIdentity(WebIdentity { audience, lifetime_ms }) => {
            let lifetime = format_ms(*lifetime_ms);
            let text = format!("token for {audience}, valid for {lifetime}");
            (json!({ "audience": audience, "lifetime": lifetime }), text)
        }
        Auth::Sigv4(SigningScope { service, region }) => {
            let service = service.as_str();
            let text = format!("for {service} in {region}");
            (json!({ "service": service, "region": region }), text)
        }
    };
    Setting::new("auth", json!({ auth.kind(): fields }), format!("{}: {text}", auth.kind()))
}

/// A client; the values of its further parameters are not shown.
fn client_credentials(client: &ClientCredentials) -> (Value, String) {
    let (url, id, secret) =
        (display(&client.token_url), &client.client_id, client.client_secret.to_string());
    let parameters: Vec<&String> = client.parameters.iter().map(|(name, _)| name).collect();
    let named =
        [("scope", &client.scope), ("audience", &client.audience), ("resource", &client.resource)];
    let told =
        named.iter().filter_map(|(name, value)| Some(format!(", {name} {}", value.as_ref()?)));
    let style = client.style.as_str();
    let text =
        format!("client {id} at {url}, {style}, secret from {secret}{}", told.collect::<String>());
    let mut value = json!({
        "tokenUrl": url, "clientId": id, "clientSecret": secret, "style": style, "parameters": parameters,
    });
    for (name, text) in named {
        value[name] = json!(text);
    }
    (value, text)
}

/// The secrets that sign requests, by name.
pub(crate) fn signing(secrets: &[SecretName]) -> Setting {
    let names: Vec<String> = secrets.iter().map(ToString::to_string).collect();
    Setting::new("signing", json!(names), listed(names.into_iter()))
}

/// The public keys that are published.
pub(super) fn public_keys(keys: &[PublicKey]) -> Setting {
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    Setting::new("publicKeys", json!(keys), listed(keys.into_iter()))
}
