package bucket

import (
	"context"
	"net/url"
	"strconv"

	"gcsup/session"
)

// Names returns the names of the first PageMax buckets of a project that begin with prefix. It
// needs the permission storage.buckets.list. The names are valid only if the status of the
// reply is 200. https://cloud.google.com/storage/docs/json_api/v1/buckets/list
func Names(ctx context.Context, client *session.Client, project, prefix string) ([]string, session.Reply) {
	var list struct {
		Items []struct {
			Name string `json:"name"`
		} `json:"items"`
	}
	q := url.Values{"project": {project}, "prefix": {prefix}, "fields": {"items(name)"}, "maxResults": {strconv.Itoa(PageMax)}}
	r := get(ctx, client, OpConfig, q, []string{"b"}, &list)
	names := make([]string, len(list.Items))
	for i, item := range list.Items {
		names[i] = item.Name
	}
	return names, r
}
