package main

import (
	"fmt"
	"regexp"
	"strings"
)

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
