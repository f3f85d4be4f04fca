//! How a destination learns who is calling.

use serde::{Deserialize, Serialize};

use super::field::{address, of_field};
use super::words::{SigningServiceV1, StyleV1};
use crate::subscription::auth::identity::{WebIdentity, check_audience, check_lifetime};
use crate::subscription::auth::oauth2::{
    ClientCredentials, PARAMETERS_MAX, check_parameter, check_parameter_name,
};
use crate::subscription::auth::sigv4::{SigningScope, check_region};
use crate::subscription::auth::{Auth, Basic, Bearer, ClientCertificate, SecretHeader, check_user};
use crate::subscription::header;
use crate::subscription::secret::SecretName;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum AuthV1 {
    Basic {
        user: String,
        password: String,
    },
    Bearer {
        token: String,
    },
    Header {
        name: String,
        value: String,
    },
    #[serde(rename = "oauth2")]
    OAuth2(Box<ClientCredentialsV1>),
    ClientCertificate {
        certificate: String,
        key: String,
    },
    Sigv4 {
        service: SigningServiceV1,
        region: String,
    },
    AwsIdentity(WebIdentityV1),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WebIdentityV1 {
    audience: String,
    lifetime_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClientCredentialsV1 {
    token_url: String,
    client_id: String,
    client_secret: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    style: StyleV1,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<(String, String)>,
}

impl From<&Auth> for AuthV1 {
    fn from(auth: &Auth) -> Self {
        match auth {
            Auth::Basic(Basic { user, password }) => {
                Self::Basic { user: user.clone(), password: password.to_string() }
            }
            Auth::Bearer(Bearer { token }) => Self::Bearer { token: token.to_string() },
            Auth::Header(SecretHeader { name, value }) => {
                Self::Header { name: name.clone(), value: value.to_string() }
            }
            Auth::OAuth2(client) => Self::OAuth2(Box::new((&**client).into())),
            Auth::ClientCertificate(ClientCertificate { certificate, key }) => {
                Self::ClientCertificate {
                    certificate: certificate.to_string(),
                    key: key.to_string(),
                }
            }
            Auth::Sigv4(SigningScope { service, region }) => {
                Self::Sigv4 { service: SigningServiceV1(*service), region: region.clone() }
            }
            Auth::AwsIdentity(WebIdentity { audience, lifetime_ms }) => {
                let (audience, lifetime_ms) = (audience.clone(), *lifetime_ms);
                Self::AwsIdentity(WebIdentityV1 { audience, lifetime_ms })
            }
        }
    }
}

impl From<&ClientCredentials> for ClientCredentialsV1 {
    fn from(client: &ClientCredentials) -> Self {
        Self {
            token_url: client.token_url.to_string(),
            client_id: client.client_id.clone(),
            client_secret: client.client_secret.to_string(),
            scope: client.scope.clone(),
            audience: client.audience.clone(),
            resource: client.resource.clone(),
            style: StyleV1(client.style),
            parameters: client.parameters.clone(),
        }
    }
}

impl AuthV1 {
    pub(super) fn into_auth(self) -> Result<Auth, String> {
        match self {
            Self::Basic { user, password } => {
                of_field("destination.auth.basic.user", check_user(&user))?;
                Ok(Auth::Basic(Basic { user, password: secret("basic.password", &password)? }))
            }
            Self::Bearer { token } => {
                Ok(Auth::Bearer(Bearer { token: secret("bearer.token", &token)? }))
            }
            Self::Header { name, value } if header::is_name(&name) => {
                Ok(Auth::Header(SecretHeader { name, value: secret("header.value", &value)? }))
            }
            Self::Header { name, .. } => {
                Err(format!("destination.auth.header: {name:?} is not the name of a header"))
            }
            Self::OAuth2(client) => client.into_client().map(Box::new).map(Auth::OAuth2),
            Self::ClientCertificate { certificate, key } => {
                Ok(Auth::ClientCertificate(ClientCertificate {
                    certificate: secret("clientCertificate.certificate", &certificate)?,
                    key: secret("clientCertificate.key", &key)?,
                }))
            }
            Self::Sigv4 { service, region } => {
                of_field("destination.auth.sigv4.region", check_region(&region))?;
                Ok(Auth::Sigv4(SigningScope { service: service.0, region }))
            }
            Self::AwsIdentity(WebIdentityV1 { audience, lifetime_ms }) => {
                of_field("destination.auth.awsIdentity.audience", check_audience(&audience))?;
                of_field("destination.auth.awsIdentity.lifetimeMs", check_lifetime(lifetime_ms))?;
                Ok(Auth::AwsIdentity(WebIdentity { audience, lifetime_ms }))
            }
        }
    }
}

impl ClientCredentialsV1 {
    fn into_client(self) -> Result<ClientCredentials, String> {
        if self.parameters.len() > PARAMETERS_MAX {
            return Err(format!(
                "destination.auth.oauth2.parameters: has more than {PARAMETERS_MAX} fields"
            ));
        }
        let parameters = self.parameters.iter();
        let of_parameters = parameters.flat_map(|(name, value)| {
            [check_parameter_name(name), check_parameter(value)].map(|it| ("parameters", it))
        });
        let named = [
            ("clientId", Some(&self.client_id)),
            ("scope", self.scope.as_ref()),
            ("audience", self.audience.as_ref()),
            ("resource", self.resource.as_ref()),
        ];
        let checked =
            named.into_iter().filter_map(|(field, value)| Some((field, check_parameter(value?))));
        for (field, checked) in checked.chain(of_parameters) {
            of_field(&format!("destination.auth.oauth2.{field}"), checked)?;
        }
        Ok(ClientCredentials {
            token_url: address("destination.auth.oauth2.tokenUrl", &self.token_url)?,
            client_secret: secret("oauth2.clientSecret", &self.client_secret)?,
            client_id: self.client_id,
            scope: self.scope,
            audience: self.audience,
            resource: self.resource,
            style: self.style.0,
            parameters: self.parameters,
        })
    }
}

fn secret(field: &str, name: &str) -> Result<SecretName, String> {
    of_field(&format!("destination.auth.{field}"), name.parse())
}
