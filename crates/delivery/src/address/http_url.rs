//! Parses URLs that people write. Describes the mistake in a text that was meant to be a URL.
//!
//! This module is separate because files and command-line options share these messages. No message
//! quotes more than a scheme, because the rest of a URL may contain credentials.

use url::Url;

/// Maximum length in bytes of a scheme that an error message quotes.
const SCHEME_MAX: usize = 20;

/// Parses the URL of an HTTP endpoint.
///
/// # Errors
///
/// Fails if the text is not an HTTP URL. The error describes the mistake and shows the expected
/// form.
pub fn http_url(text: &str) -> Result<Url, String> {
    let refused = |problem: String| Err(format!("{problem}; expected https://… or http://…"));
    if let Some(mistake) = mistake(text) {
        return refused(mistake);
    }
    match Url::parse(text) {
        Ok(url) if is_http(url.scheme()) => Ok(url),
        Ok(_) => refused("not an HTTP URL".to_owned()),
        Err(problem) => refused(format!("not a valid URL: {problem}")),
    }
}

/// Describes the mistake in a text that was meant to be a URL. Returns `None` for any other text,
/// such as the name of a resource.
#[must_use]
pub fn mistake(text: &str) -> Option<String> {
    const NO_SCHEME: &str = "the URL has no scheme";
    let trimmed = text.trim_start();
    if trimmed.len() < text.len() {
        return is_like_url(trimmed).then(|| "there is a space before the URL".to_owned());
    }
    if let Some((scheme, _)) = text.split_once("://") {
        let is_other = is_scheme(scheme) && !is_http(&scheme.to_ascii_lowercase());
        return is_other.then(|| format!("the scheme \"{scheme}\" is not supported"));
    }
    for scheme in ["https", "http", "s3", "sqs"] {
        match without_prefix(text, scheme) {
            Some(rest) if rest.starts_with(':') => {
                return Some(format!("two slashes are missing after {scheme}:"));
            }
            Some(rest) if rest.starts_with("//") => {
                return Some(format!("a colon is missing after {scheme}"));
            }
            Some(_) | None => {}
        }
    }
    (text.starts_with("//") || begins_with_host(text)).then(|| NO_SCHEME.to_owned())
}

fn is_like_url(text: &str) -> bool {
    text.contains("://") || mistake(text).is_some()
}

fn is_http(scheme: &str) -> bool {
    matches!(scheme, "http" | "https")
}

/// Returns the rest of a text after this prefix; `None` if the text does not begin with it. Case is
/// ignored.
fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// True if the text is a valid URL scheme (RFC 3986, 3.1).
fn is_scheme(text: &str) -> bool {
    text.len() <= SCHEME_MAX
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// True if a text looks like a URL without its scheme. Such a text begins with a dotted name,
/// `localhost`, an IP address, or a name with a port.
fn begins_with_host(text: &str) -> bool {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = host.rsplit_once(':').unwrap_or((host, ""));
    if host.starts_with('[') {
        return true;
    }
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let labels: Vec<&str> = host.trim_end_matches('.').split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || "-_".contains(c))
    };
    let is_known = labels.len() > 1 || is_port || host.eq_ignore_ascii_case("localhost");
    is_known && labels.iter().all(is_label) && (is_port || port.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mistake_in_a_url_is_named_and_its_text_is_not_quoted() {
        for (text, expected) in [
            ("api.example.com/hook", "the URL has no scheme"),
            ("api.example.com", "the URL has no scheme"),
            ("www.example.com", "the URL has no scheme"),
            ("bücher.example/in", "the URL has no scheme"),
            ("api.example.com:8443/hook?code=secret", "the URL has no scheme"),
            ("user:word@api.example.com/hook", "the URL has no scheme"),
            ("localhost:8080/x", "the URL has no scheme"),
            ("localhost", "the URL has no scheme"),
            ("billing:8080", "the URL has no scheme"),
            ("10.0.0.1/x", "the URL has no scheme"),
            ("[::1]:8080/x", "the URL has no scheme"),
            ("//host/x", "the URL has no scheme"),
            ("https:/api.example.com/hook", "two slashes are missing after https:"),
            ("HTTP:api.example.com", "two slashes are missing after http:"),
            ("s3:/bucket/prefix", "two slashes are missing after s3:"),
            ("https//api.example.com", "a colon is missing after https"),
            ("htps://api.example.com", "the scheme \"htps\" is not supported"),
            ("ftp://api.example.com", "the scheme \"ftp\" is not supported"),
            (" https://api.example.com", "there is a space before the URL"),
            ("\tapi.example.com", "there is a space before the URL"),
        ] {
            assert_eq!(mistake(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_url_is_read_or_refused_with_what_would_be_right() {
        for text in ["https://a.example.com/x?y=z", "HTTP://localhost:8080", "http://10.0.0.1/"] {
            assert!(http_url(text).is_ok(), "{text}");
        }
        for (text, problem) in [
            ("a.example.com/x", "the URL has no scheme"),
            ("localhost:8080/x", "the URL has no scheme"),
            ("s3://bucket", "the scheme \"s3\" is not supported"),
            ("mailto:a", "not an HTTP URL"),
            ("somewhere", "not a valid URL: relative URL without a base"),
            ("https://", "not a valid URL: empty host"),
        ] {
            let expected = format!("{problem}; expected https://… or http://…");
            assert_eq!(http_url(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn another_text_is_no_mistyped_url() {
        for text in [
            "",
            " ",
            "https://a.example.com/",
            "HTTP://a",
            "somewhere",
            "bucket/prefix",
            "/events",
            "/subscriptions/1/resourceGroups/a.b",
            "services/n/name",
            "topic:shop/orders",
            "env:BILLING_URL",
            "my secret://x y",
            "a..b",
            "http",
            "httpbin",
            "{{url}}",
        ] {
            assert_eq!(mistake(text), None, "{text}");
        }
    }
}
