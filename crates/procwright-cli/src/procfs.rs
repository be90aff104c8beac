//! `/proc/PID/stat`, see proc_pid_stat(5).

/// Fields of `/proc/PID/stat` behind the name, the state first. The name may hold
/// anything, spaces and parentheses included.
pub(crate) fn fields_after_name(stat: &str) -> Option<impl Iterator<Item = &str>> {
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_ascii_whitespace())
}
