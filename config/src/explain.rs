//! The manual page of a parameter, made from its row in the table.

use crate::params::{self, Param, SECTIONS, Section};

/// Explains a parameter, in every section that has it; the error is a hint at the nearest name.
pub fn explain(name: &str) -> Result<String, String> {
    let found: Vec<(Section, &Param)> =
        SECTIONS.into_iter().filter_map(|s| Some((s, params::find(s, name)?))).collect();
    if found.is_empty() {
        let near = SECTIONS.into_iter().find_map(|s| params::nearest(s, name));
        let shown = crate::problem::shorten(name);
        return Err(near.map_or_else(
            || format!("there is no parameter {shown}"),
            |p| format!("there is no parameter {shown}; did you mean {}?", p.name),
        ));
    }
    let pages: Vec<String> = found.into_iter().map(|(section, param)| page(section, param)).collect();
    Ok(pages.join("\n"))
}

fn page(section: Section, param: &Param) -> String {
    let mut page = format!("{} in [{}]\n  {}\n", param.name, section.name(), param.doc);
    let default = if param.default.is_empty() { "none" } else { param.default };
    page.push_str(&format!("  Default: {default}\n"));
    page.push_str(&format!("  Allowed: {}\n", param.allowed()));
    page.push_str(&format!("  Change:  {} ({})\n", param.restart.letter(), param.restart.words()));
    if !param.aliases.is_empty() {
        page.push_str(&format!("  Also:    {}\n", param.aliases.join(", ")));
    }
    if !param.used {
        page.push_str("  Note:    accepted, not used yet\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_range_default_and_restart() {
        let page = explain("noofreplicas").unwrap();
        assert_eq!(
            page,
            "NoOfReplicas in [ndbd]\n  Copies of every row; it must divide the number of data nodes.\n  Default: 2\n  \
             Allowed: a number from 1 to 4\n  Change:  IS (stop, initial start and restore of the whole cluster)\n"
        );
        assert!(explain("SendBufferMemory").unwrap().contains("in [tcp]"));
        assert_eq!(
            explain("DataMemroy").unwrap_err(),
            "there is no parameter DataMemroy; did you mean DataMemory?"
        );
        assert_eq!(explain("zzzzzzzz").unwrap_err(), "there is no parameter zzzzzzzz");
    }
}
