package fakegcs

import "testing"

func TestGlobPattern(t *testing.T) {
	for _, test := range []struct{ glob, matches, others string }{
		{"*", "a", "a/b"},
		{"a**", "a/b", ""},
		{"**/x", "x", "ax"},
		{"**/x", "a/b/x", "a/bx"},
		{"a/**/x", "a/x", "ax"},
		{"a**/x", "ab/x", "ax"},
		{"{**/x,y}", "x", "z"},
		{"a?c", "abc", "a/c"},
		{"a.c", "a.c", "abc"},
		{"[a-c]x", "bx", "dx"},
		{"[!a-c]x", "dx", "bx"},
		{"[^a-c]x", "dx", "ax"},
		{"[]]", "]", "["},
		{"{a,b*}/c", "bb/c", "c/c"},
		{"{a,{b,c}}", "c", "{a"},
		{"a,b}", "a,b}", "a"},
		{`\*`, "*", "a"},
		{"ü?", "üé", "u"},
		{"a\n*", "a\nb", "a"},
	} {
		re, err := globPattern(test.glob)
		if err != nil {
			t.Errorf("%q: %v", test.glob, err)
			continue
		}
		if !re.MatchString(test.matches) || re.MatchString(test.others) {
			t.Errorf("%q: matches %q: %t, %q: %t", test.glob, test.matches, re.MatchString(test.matches), test.others, re.MatchString(test.others))
		}
	}
	for _, glob := range []string{"[a", "[", "[!", "{a", `a\`, "[z-a]"} {
		if _, err := globPattern(glob); err == nil {
			t.Errorf("%q is accepted", glob)
		}
	}
}
