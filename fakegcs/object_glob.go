package fakegcs

import (
	"regexp"
	"strings"
)

// globPattern returns the regular expression for the matchGlob of a listing,
// https://cloud.google.com/storage/docs/json_api/v1/objects/list#list-objects-and-prefixes-using-glob:
//
//   - any characters except /
//     **       any characters; **/ at the beginning of a path segment also matches nothing
//     ?        one character except /
//     [abc]    one of the characters, [a-z] a range, [!abc] and [^abc] none of them
//     {a,b}    one of the patterns
//     \x       the character x
func globPattern(glob string) (*regexp.Regexp, *apiError) {
	var b strings.Builder
	b.WriteString(`^`)
	depth, runes := 0, []rune(glob)
	for i := 0; i < len(runes); i++ {
		switch c := runes[i]; c {
		case '*':
			if i+1 < len(runes) && runes[i+1] == '*' {
				i++
				// Google's tests of matchGlob expect that **/x matches x.
				if i+1 < len(runes) && runes[i+1] == '/' && (i == 1 || strings.ContainsRune("/{,", runes[i-2])) {
					i++
					b.WriteString(`(?:.*/)?`)
				} else {
					b.WriteString(`.*`)
				}
			} else {
				b.WriteString(`[^/]*`)
			}
		case '?':
			b.WriteString(`[^/]`)
		case '[':
			end := i + 1
			if end < len(runes) && (runes[end] == '!' || runes[end] == '^') {
				end++
			}
			for end++; end < len(runes) && runes[end] != ']'; end++ { // a ] at the beginning is a character of the class
			}
			if end >= len(runes) {
				return nil, invalid("Invalid glob pattern '%s': a [ has no ].", glob)
			}
			class := string(runes[i+1 : end])
			b.WriteByte('[')
			if class[0] == '!' || class[0] == '^' {
				b.WriteByte('^')
				class = class[1:]
			}
			for _, r := range class {
				if strings.ContainsRune(`\[]^`, r) {
					b.WriteByte('\\')
				}
				b.WriteRune(r)
			}
			b.WriteByte(']')
			i = end
		case '{':
			depth++
			b.WriteString(`(?:`)
		case '}':
			if depth == 0 {
				b.WriteString(`\}`)
				break
			}
			depth--
			b.WriteByte(')')
		case ',':
			if depth > 0 {
				b.WriteByte('|')
			} else {
				b.WriteByte(',')
			}
		case '\\':
			if i++; i == len(runes) {
				return nil, invalid("Invalid glob pattern '%s': nothing follows the last \\.", glob)
			}
			b.WriteString(regexp.QuoteMeta(string(runes[i])))
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	if depth > 0 {
		return nil, invalid("Invalid glob pattern '%s': a { has no }.", glob)
	}
	b.WriteString(`$`)
	re, err := regexp.Compile(`(?s)` + b.String())
	if err != nil { // such as a range [z-a]
		return nil, invalid("Invalid glob pattern '%s'.", glob)
	}
	return re, nil
}
