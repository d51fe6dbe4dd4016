package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// describe returns the version and revision of the working tree. The version is the
// tag, or the last tag with the number of commits since and the revision. Without a
// tag, the first commit has the version v0.0.0.
func describe() (version, revision string) {
	revision = git("describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+dirty")
	if revision == "" {
		return "v0.0.0-unknown", "unknown"
	}
	commit, dirty := revision[:7], strings.ReplaceAll(revision[40:], "+", "-")
	untagged := "v0.0.0-" + git("rev-list", "--count", "HEAD") + "-g" + commit + dirty
	return cmp.Or(git("describe", "--tags", "--match=v*", "--dirty"), untagged), revision
}

// git returns the output of a git command, or "" if it fails.
func git(args ...string) string {
	out, _ := output(".", nil, "git", args...)
	return out
}

// packageVersion returns the version of a package, such that dpkg and rpm order it as git
// describe does: v1.2.3-rc.1 is before v1.2.3, and v1.2.3-4-gabcdef0, four commits later, is after
// it.
func packageVersion(version string) (string, error) {
	m := describedVersion.FindStringSubmatch(version)
	if m == nil {
		return "", fmt.Errorf("version %q: a package needs one such as v1.2.3, v1.2.3-rc.1 or what git describe prints", version)
	}
	text := m[1]
	if m[2] != "" {
		text += "~" + strings.ReplaceAll(m[2], "-", ".")
	}
	if m[3] != "" {
		text += "+" + m[3] + "." + m[4]
	}
	if m[5] != "" {
		text += "+dirty"
	}
	return text, nil
}

// describedVersion matches the version of a tag: its numbers and the name of a pre-release; the
// number of commits since, and the last one; and -dirty.
var describedVersion = regexp.MustCompile(`^v(\d+(?:\.\d+)*)(?:-([A-Za-z][0-9A-Za-z.-]*?))??(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?$`)
