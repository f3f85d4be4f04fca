//! Finds the folder in which commands cache data read from dead-letter buckets.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::terminal::usage::usage_error;

/// The environment variable that can turn the cache off.
const CACHE: &str = "LASTMILE_CACHE";
/// The value of `LASTMILE_CACHE` that turns the cache off; any other value is an error.
const OFF: &str = "off";
/// The environment variables that name a folder for caches, in order of precedence, each with the
/// path of this cache below that folder. <https://specifications.freedesktop.org/basedir/latest/>
const FOLDERS: [(&str, &str); 3] = [
    ("XDG_CACHE_HOME", "lastmile/dead-letters"),
    ("LOCALAPPDATA", "lastmile/dead-letters"),
    ("HOME", ".cache/lastmile/dead-letters"),
];

/// Returns the cache folder according to these environment variables; `None` if the cache is off,
/// or no variable has an absolute path.
///
/// # Errors
/// A usage error for an unknown value of `LASTMILE_CACHE`.
pub(crate) fn folder(
    variable: impl Fn(&str) -> Option<OsString>,
) -> anyhow::Result<Option<PathBuf>> {
    match variable(CACHE).filter(|value| !value.is_empty()) {
        Some(value) if value == OFF => return Ok(None),
        Some(value) => {
            let value = value.to_string_lossy();
            return Err(usage_error(format!(
                "{CACHE} is {value:?}, but the only valid value is \"{OFF}\""
            )));
        }
        None => {}
    }
    let folders = FOLDERS.into_iter().filter_map(|(name, path)| Some((variable(name)?, path)));
    let mut folders = folders.map(|(folder, path)| (PathBuf::from(folder), path));
    // The specification requires that relative paths are ignored.
    let folder = folders.find(|(folder, _)| folder.is_absolute());
    Ok(folder.map(|(folder, path)| folder.join(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let value = |wanted: &str| {
            let mut found = variables.iter().filter(|(name, _)| *name == wanted);
            found.next().map(|(_, value)| OsString::from(value))
        };
        let folder = folder(value).map_err(|error| error.to_string())?;
        Ok(folder.map(|folder| folder.display().to_string()))
    }

    #[test]
    fn the_cache_is_in_the_folder_for_caches_unless_it_is_off() {
        let path = |path: &str| Ok(Some(path.to_owned()));
        let (home, xdg) = (("HOME", "/home/a"), ("XDG_CACHE_HOME", "/cache"));
        assert_eq!(folder_of(&[home, xdg]), path("/cache/lastmile/dead-letters"));
        assert_eq!(folder_of(&[home]), path("/home/a/.cache/lastmile/dead-letters"));
        let relative = ("XDG_CACHE_HOME", "cache");
        assert_eq!(folder_of(&[home, relative]), folder_of(&[home]));
        assert_eq!(folder_of(&[home, ("LASTMILE_CACHE", "")]), folder_of(&[home]));
        assert_eq!(folder_of(&[home, ("LASTMILE_CACHE", "off")]), Ok(None));
        assert_eq!(folder_of(&[]), Ok(None));
        let problem = "LASTMILE_CACHE is \"no\", but the only valid value is \"off\"";
        assert_eq!(folder_of(&[home, ("LASTMILE_CACHE", "no")]), Err(problem.to_owned()));
    }
}
