package fakegcs_test

import (
	"testing"
)

// Node's client appends /b/BUCKET to STORAGE_EMULATOR_HOST.
func TestNodePathsAreServed(t *testing.T) {
	w := newWorld(t, nil)
	w.want(200, "/storage/v1/b/of-node", "POST", "/b?project=p", []byte(`{"name":"of-node"}`))
	if a := w.do("GET", "/b?project=p", nil); len(asList(a.json(t)["items"])) != 2 {
		t.Errorf("list buckets: %d %s", a.StatusCode, a.body)
	}
	w.do("POST", "/upload/storage/v1/b/of-node/o?uploadType=media&name=a%2Fb", []byte("bytes"))
	for _, test := range []struct{ target, want string }{
		{"/b/of-node", `"storage#bucket"`}, {"/b/of-node/o", `"a/b"`}, {"/b/of-node/o/a%2Fb", `"size": "5"`}, {"/b/of-node/o/a%2Fb?alt=media", "bytes"},
	} {
		w.want(200, test.want, "GET", test.target, nil)
	}
	w.want(404, `"error": {`, "GET", "/b/of-node/o/absent", nil)
	w.want(200, `"kind": "storage#hmacKey"`, "POST", "/projects/p/hmacKeys?serviceAccountEmail=robot@example.com", nil)
	w.want(204, "", "DELETE", "/b/of-node/o/a%2Fb", nil)
}
