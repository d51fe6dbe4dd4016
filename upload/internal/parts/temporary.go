package parts

import (
	"regexp"
	"strings"
)

// TemporaryName is the beginning of the last element of the names of temporary objects that are in a managed folder,
// or in a bucket with hierarchical namespace.
const TemporaryName = "gcsup-parts-"

// inFolder matches the names of these objects: they have the ID of the upload, 26 random characters, and a number.
var inFolder = regexp.MustCompile(`(^|/)` + TemporaryName + `[0-9A-Za-z_-]+-[A-Z2-7]{26}-(c\d+-)?\d{4,}$`)

// Temporary reports whether an object has the name of a temporary one.
func Temporary(object string) bool {
	return strings.HasPrefix(object, TemporaryDir) || inFolder.MatchString(object)
}
