package session

import (
	"net/netip"
	"strings"
)

// bucketNameRule returns the rule that a bucket name breaks, in the words of
// https://cloud.google.com/storage/docs/buckets#naming, or "". It does not apply the rules
// on "goog" and "google", because Google's own buckets have such names.
func bucketNameRule(name string) string {
	const (
		characters = "bucket names can only contain lowercase letters, numeric characters, dashes (-), underscores (_), and dots (.)"
		ends       = "bucket names must start and end with a number or letter"
		length     = "bucket names must contain 3-63 characters; names containing dots can contain up to 222 characters, but each dot-separated component can be no longer than 63 characters"
		address    = "bucket names cannot be represented as an IP address in dotted-decimal notation"
	)
	letterOrDigit := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
	for i := range len(name) {
		if !letterOrDigit(name[i]) && !strings.ContainsRune("-_.", rune(name[i])) {
			return characters
		}
	}
	if len(name) < 3 || len(name) > 222 {
		return length
	}
	for part := range strings.SplitSeq(name, ".") {
		if len(part) > 63 {
			return length
		}
	}
	if !letterOrDigit(name[0]) || !letterOrDigit(name[len(name)-1]) {
		return ends
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.Is4() {
		return address
	}
	return ""
}
