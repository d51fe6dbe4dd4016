package fakegcs_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/testsize"
)

// generationsOf returns the metadata of all generations in the bucket bkt, and the bytes of
// those that can be read.
func (w *world) generationsOf(kinds ...string) []string {
	w.Helper()
	var list []string
	for _, kind := range kinds {
		a := w.do("GET", "/storage/v1/b/bkt/o?"+kind+"=true&projection=full&fields=items(name,generation,metageneration,etag,size,crc32c,contentType,metadata,acl(entity,role),"+
			"timeCreated,updated,timeDeleted,softDeleteTime,hardDeleteTime)", nil)
		if a.StatusCode != 200 {
			w.Fatalf("list: %d %s", a.StatusCode, a.body)
		}
		for _, item := range asList(a.json(w)["items"]) {
			o := item.(map[string]any)
			line := kind
			for _, name := range slices.Sorted(maps.Keys(o)) {
				line += fmt.Sprintf(" %s=%v", name, o[name])
			}
			if kind == "versions" {
				read := w.do("GET", fmt.Sprintf("/storage/v1/b/bkt/o/%v?alt=media&generation=%v", o["name"], o["generation"]), nil)
				if crc([]byte(read.body)) != o["crc32c"] {
					w.Errorf("%s has other bytes: %d, %q", line, read.StatusCode, read.body)
				}
			}
			list = append(list, line)
		}
	}
	return list
}

// Requests that change few objects at the same time leave a directory in which the next
// server finds what the last one had.
func TestDirectoryAfterConcurrentChanges(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many requests")
	}
	seed := testsize.Seed(t)
	for _, config := range []string{`{}`, `{"versioning":{"enabled":true}}`, `{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := newWorld(t, &fakegcs.Options{Dir: dir})
			w.do("PATCH", "/storage/v1/b/bkt", []byte(config))
			const objects = "/storage/v1/b/bkt/o/"
			var group sync.WaitGroup
			for g := range 8 {
				group.Go(func() {
					random := rand.New(rand.NewPCG(seed, uint64(g)))
					name := func() string { return fmt.Sprintf("o%d", random.IntN(4)) }
					for i := range testsize.Full(200, 40) {
						content := strings.Repeat(fmt.Sprintf("%d of %d. ", i, g), 1+random.IntN(9))
						method, target, body := "", "", ""
						switch random.IntN(12) {
						case 0, 1, 2:
							method, target, body = "PUT", "/bkt/"+name(), content
						case 3:
							method, target, body = "POST", "/upload/storage/v1/b/bkt/o?uploadType=media&ifGenerationMatch=0&name="+name(), content
						case 4:
							method, target, body = "PATCH", objects+name(), fmt.Sprintf(`{"metadata":{"a":"%d"}}`, i)
						case 5:
							method, target = "DELETE", objects+name()
						case 6:
							method, target = "POST", objects+name()+"/moveTo/o/"+name()
						case 7:
							method, target, body = "POST", objects+name()+"/compose", fmt.Sprintf(`{"sourceObjects":[{"name":%q},{"name":%q}],"deleteSourceObjects":true}`, name(), name())
						case 8:
							method, target = "POST", objects+name()+"/rewriteTo/b/bkt/o/"+name()
						case 9:
							method, target, body = "POST", objects+name()+"/acl", `{"entity":"allUsers","role":"READER"}`
						case 10:
							uri := w.start(name())
							method, target, body = "PUT", uri, content
						default:
							method, target, body = "PATCH", "/storage/v1/b/bkt", fmt.Sprintf(`{"labels":{"a":"%d"}}`, i)
						}
						a, err := w.try(method, target, []byte(body))
						if err != nil {
							t.Errorf("%s %s: %v", method, target, err)
							return
						}
						if a.StatusCode >= 500 {
							t.Errorf("%s %s: %d %s", method, target, a.StatusCode, a.body)
						}
					}
				})
			}
			group.Wait()
			kinds := []string{"versions"}
			if strings.Contains(config, "softDelete") {
				kinds = append(kinds, "softDeleted")
			}
			want := w.generationsOf(kinds...)
			if len(want) == 0 {
				t.Error("there are no objects")
			}
			w = w.again(dir)
			if got := w.generationsOf(kinds...); !slices.Equal(got, want) {
				t.Errorf("after a restart:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}
