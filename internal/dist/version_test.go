package main

import "testing"

func TestPackageVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v0": "0", "v1.2.3-rc.1": "1.2.3~rc.1", "v1.2.3-beta-2": "1.2.3~beta.2",
		"v1.2.3-4-gabcdef0": "1.2.3+4.gabcdef0", "v1.2.3-rc.1-4-gabcdef0": "1.2.3~rc.1+4.gabcdef0",
		"v1.2.3-dirty": "1.2.3+dirty", "v0.0.0-1234-g0a1b2c3-dirty": "0.0.0+1234.g0a1b2c3+dirty",
		"": "", "1.2.3": "", "v": "", "v1..2": "", "v1.2.3-": "", "v1.2.3+meta": "", "v1 2": "", "vnext": "", "v0.0.0-unknown": "0.0.0~unknown",
	} {
		got, err := packageVersion(version)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", version, got, err, want)
		}
	}
}
