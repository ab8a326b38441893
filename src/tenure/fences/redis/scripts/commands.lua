-- Run several commands whole or not at all. Redis does not roll a script back, so what it wrote is put back by hand.
--
-- KEYS      every key of the commands, first those that may have to be put back
-- ARGV[1]   how many those are
-- ARGV[2]   how many commands there are
-- ARGV[3..] for each command the number of its words, then the words

local saved = {}
for place = 1, tonumber(ARGV[1]) do
  local key = KEYS[place]
  if redis.acl_check_cmd and not redis.acl_check_cmd('RESTORE', key, '0', '') then
    return {err = 'several commands in one write need the right to RESTORE ' .. key .. '; nothing was changed'}
  end
  saved[place] = {redis.call('DUMP', key), redis.call('PTTL', key)}
end

local function put_back()
  local left = ''
  for place, copy in ipairs(saved) do
    local answer
    if copy[1] then
      answer = redis.pcall('RESTORE', KEYS[place], copy[2] < 0 and 0 or math.max(copy[2], 1), copy[1], 'REPLACE')
    else
      answer = redis.pcall('DEL', KEYS[place])
    end
    if type(answer) == 'table' and answer.err then
      left = left .. '; ' .. KEYS[place] .. ' could not be put back: ' .. answer.err
    end
  end
  return left == '' and '; nothing was changed' or left
end

local replies, at = {}, 3
for number = 1, tonumber(ARGV[2]) do
  local last = at + tonumber(ARGV[at])
  local reply = redis.pcall(unpack(ARGV, at + 1, last))
  if type(reply) == 'table' and reply.err then
    return {err = 'command ' .. number .. ' (' .. ARGV[at + 1] .. ') failed: ' .. reply.err .. put_back()}
  end
  replies[number] = reply
  at = last + 1
end
return replies
