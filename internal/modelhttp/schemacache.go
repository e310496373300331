package modelhttp

import (
	"encoding/json"
	"sync"
)

// renderedSchemas are results of ToolSchema: agents send the same tools with each turn.
var renderedSchemas = schemaCache{of: map[string]json.RawMessage{}}

// CachedSchemaBytes bounds the texts of the cached schemas.
const CachedSchemaBytes = 4 << 20

// schemaCache is a cache that begins anew when it is full.
type schemaCache struct {
	mu    sync.RWMutex
	of    map[string]json.RawMessage // by the schema as written
	bytes int
}

func (c *schemaCache) lookup(schema string) (json.RawMessage, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out, ok := c.of[schema]
	return out, ok
}

func (c *schemaCache) keep(schema string, out json.RawMessage) {
	size := len(schema) + len(out)
	if size > CachedSchemaBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes+size > CachedSchemaBytes {
		clear(c.of)
		c.bytes = 0
	}
	if _, ok := c.of[schema]; !ok {
		c.bytes += size
	}
	c.of[schema] = out
}
