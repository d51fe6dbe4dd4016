package gcs

import (
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// product returns the User-Agent of this package: gcsup/ and the version of the module, or
// gcsup/devel if the program was built without one.
var product = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return productOf("", nil)
	}
	modules := slices.Concat([]*debug.Module{&info.Main}, info.Deps)
	return productOf(strings.TrimSuffix(reflect.TypeFor[Client]().PkgPath(), "/upload/gcs"), modules)
})

// productOf returns the User-Agent if the module with this path has its version in modules.
func productOf(path string, modules []*debug.Module) string {
	version := ""
	for _, m := range modules {
		if m.Path == path {
			version = m.Version
		}
	}
	if version == "" || version == "(devel)" { // parentheses begin a comment in User-Agent
		version = "devel"
	}
	return "gcsup/" + version
}
