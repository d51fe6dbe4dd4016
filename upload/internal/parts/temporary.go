package parts

import "strings"

const (
	// TemporaryDir is the beginning of the names of temporary objects, unless they have [TemporaryName].
	TemporaryDir = "gcsup-parts/"

	// TemporaryName is the beginning of the last element of the names of temporary objects that are in a managed
	// folder, or in a bucket with hierarchical namespace.
	TemporaryName = "gcsup-parts-"
)

// Temporary reports whether an object has the name of a temporary one. It is not a regular expression, because
// programs would link that package.
func Temporary(object string) bool {
	if strings.HasPrefix(object, TemporaryDir) {
		return true
	}
	rest, ok := strings.CutPrefix(object[strings.LastIndexByte(object, '/')+1:], TemporaryName)
	if !ok {
		return false
	}
	words := strings.Split(rest, "-") // of the ID, the random text, the level of a group of parts, if it is one, and the number
	n := len(words) - 1
	if len(words[n]) < 4 || strings.Trim(words[n], digits) != "" {
		return false
	}
	if level, ok := strings.CutPrefix(words[max(n-1, 0)], "c"); ok && level != "" && strings.Trim(level, digits) == "" {
		n--
	}
	return n >= 2 && len(words[n-1]) == 26 && strings.Trim(words[n-1], base32) == ""
}

const (
	digits = "0123456789"
	base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" // of [crypto/rand.Text], which returns 26 of them
)
